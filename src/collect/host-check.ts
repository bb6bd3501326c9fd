/** Decides which host names a server answers to. In: the listening address, the configured names, the Host header of
 *  a request. Out: true if the server serves that host. This stops DNS rebinding: a web page whose name was pointed
 *  here sends its own name and is refused. */
import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";

export const LOOPBACK = /^(127(\.\d{1,3}){3}|::1|localhost)$/;
const EVERYWHERE: ReadonlySet<string> = new Set(["0.0.0.0", "::", ""]);
/** Limit on remembered good Host headers. Requests send nearly always the same host and port. */
const MOST_KNOWN = 1000;

export class HostCheck {
  readonly #names: ReadonlySet<string>;
  readonly #isLoopback: boolean;
  readonly #isEverywhere: boolean;
  readonly #known = new Set<string>();

  constructor(listensAt: string, names: readonly string[]) {
    this.#names = new Set([listensAt, ...names].map((name) => name.toLowerCase()));
    this.#isLoopback = LOOPBACK.test(listensAt);
    this.#isEverywhere = EVERYWHERE.has(listensAt);
  }

  isServed(host: string | undefined): boolean {
    if (host === undefined) return false;
    if (this.#known.has(host)) return true;
    const name = nameOf(host);
    const isLocal = LOOPBACK.test(name) && (this.#isLoopback || this.#isEverywhere);
    const isServed = this.#names.has(name) || isLocal || (this.#isEverywhere && isIP(name) !== 0);
    if (isServed && this.#known.size < MOST_KNOWN) this.#known.add(host);
    return isServed;
  }
}

/** True if a request comes from a web page. Used by a server on loopback that requires no token. Every program of
 *  this host may call such a server; a page open in a local browser may not. An address that a person types into the
 *  browser is not a page. */
export function isFromPage(headers: IncomingHttpHeaders, hosts: HostCheck): boolean {
  if (!hosts.isServed(headers.host)) return true;
  return headers.origin !== undefined || !["none", undefined].includes(headers["sec-fetch-site"] as string);
}

/** The host without its port; an IPv6 address without its brackets. */
function nameOf(host: string): string {
  const [, bracketed, plain = ""] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(host) ?? [];
  return (bracketed ?? plain).toLowerCase();
}

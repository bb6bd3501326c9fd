/** Which names a server answers to. In: where it listens, the names of the configuration, and the Host of a request. Out:
 *  whether it is meant. A web page whose own name was made to point here sends that name, and is not answered. */
import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";

export const LOOPBACK = /^(127(\.\d{1,3}){3}|::1|localhost)$/;
const EVERYWHERE: ReadonlySet<string> = new Set(["0.0.0.0", "::", ""]);
/** Hosts that were found good, as requests spell them: with a port, mostly always the same. */
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

/** Whether a request comes from a web page, for a server on loopback that asks for no token: then every program of this host
 *  may ask, and a page that a browser here has open may not. An address that a person types is no page. */
export function isFromPage(headers: IncomingHttpHeaders, hosts: HostCheck): boolean {
  if (!hosts.isServed(headers.host)) return true;
  return headers.origin !== undefined || !["none", undefined].includes(headers["sec-fetch-site"] as string);
}

/** Without the port, and an address of version 6 without its brackets. */
function nameOf(host: string): string {
  const [, bracketed, plain = ""] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(host) ?? [];
  return (bracketed ?? plain).toLowerCase();
}

/** Identifies the caller and its rollout. In: headers and the parsed path. Out: the caller, or a refusal. A request
 *  names its rollout in the URL (`/r/<id>/v1/…`), in the header `x-rollbook-rollout`, or by the rollout's key as its
 *  API key. A foreign key is never stored, logged or passed on. */
import { createHmac, hash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { idFault } from "../../../base/index.ts";
import { HttpRefusal } from "../wire/index.ts";
import type { ApiPath } from "./api-path.ts";

const ROLLOUT_HEADER = "x-rollbook-rollout";
const KEY_PREFIX = "rb-";
/** Separates a rollout from its owning gateway in a key. Ids and gateway names never contain it. */
const OWNED_BY = "@";
const MAC_HEX = 32;
/** Maximum number of cached valid keys. A key is long and random: a caller that finds it here already knows it. */
const REMEMBERED_KEYS = 10_000;

export interface Caller {
  /** True if the caller may open and close any rollout, and give feedback to it. */
  readonly isOwner: boolean;
  readonly rollout: string | undefined;
  /** The gateway that the rollout's key names. */
  readonly owner: string | undefined;
}

/** Content of a rollout's key. */
type KeyText = Pick<Caller, "rollout" | "owner">;

export class Gatekeeper {
  readonly #tokens: readonly string[];
  readonly #secret: string | undefined;
  readonly #isOpen: (rollout: string) => boolean;
  /** Permission of each known key: everything, or one rollout. */
  readonly #known = new Map<string, Caller>();
  readonly #name: string | undefined;

  /** `name` of this gateway, if keys name the owner of a rollout. Keys without an owner stay valid. */
  constructor(tokens: readonly string[], isOpen: (rollout: string) => boolean, name?: string) {
    this.#tokens = tokens.map(fingerprint);
    this.#secret = tokens[0];
    this.#isOpen = isOpen;
    this.#name = name;
  }

  /** The key that an agent uses for this rollout. The key is identity and permission in one. */
  keyFor(rollout: string): string {
    const text = this.#name === undefined ? rollout : `${rollout}${OWNED_BY}${this.#name}`;
    return this.#secret === undefined ? KEY_PREFIX + text : `${KEY_PREFIX}${text}.${this.#mac(text)}`;
  }

  authenticate(headers: IncomingHttpHeaders, path: ApiPath): Caller {
    const key = keyIn(headers);
    const { isOwner, rollout: byKey, owner } = this.#factsOf(key);
    if (!isOwner && byKey === undefined) {
      const what = key === undefined ? "there is no key" : "the key is not one of this gateway's";
      throw new HttpRefusal(
        401,
        "unauthorized",
        `${what}. Send a token or a rollout's own key as Bearer or x-api-key.`,
      );
    }
    // Without tokens every program on this machine may call, but no web page in a local browser.
    if (
      this.#secret === undefined &&
      (headers.origin !== undefined || headers["sec-fetch-site"] !== undefined)
    )
      throw new HttpRefusal(403, "browser-refused", "requests from web pages need a token. Set tokensEnv.");
    const rollout = oneOf(byKey, headerOf(headers), path.rollout);
    if (rollout !== undefined && !this.#isOpen(rollout)) refuseBadId(rollout);
    return { isOwner, rollout, owner };
  }

  #factsOf(key: string | undefined): Caller {
    const known = key === undefined ? undefined : this.#known.get(key);
    if (known !== undefined) return known;
    const facts = { isOwner: this.#isOwner(key), ...(key === undefined ? NO_ROLLOUT : this.#rolloutOf(key)) };
    // Without a secret, the validity of a key depends on the rollouts open now, so it is not cached.
    const isProven = this.#secret !== undefined && (facts.isOwner || facts.rollout !== undefined);
    if (isProven && key !== undefined) {
      if (this.#known.size >= REMEMBERED_KEYS) this.#known.clear();
      this.#known.set(key, facts);
    }
    return facts;
  }

  #isOwner(key: string | undefined): boolean {
    if (this.#secret === undefined) return true;
    if (key === undefined) return false;
    const asked = Buffer.from(fingerprint(key));
    return this.#tokens.some((token) => timingSafeEqual(Buffer.from(token), asked));
  }

  #rolloutOf(key: string): KeyText {
    const isKey = key.startsWith(KEY_PREFIX);
    if (this.#secret === undefined) {
      const named = isKey ? textOf(key.slice(KEY_PREFIX.length)) : NO_ROLLOUT;
      if (named.rollout !== undefined && (named.owner !== undefined || this.#isOpen(named.rollout)))
        return named;
      return this.#isOpen(key) ? { rollout: key, owner: undefined } : named;
    }
    if (!isKey) return NO_ROLLOUT;
    const text = key.slice(KEY_PREFIX.length, -MAC_HEX - 1);
    const given = Buffer.from(key.slice(-MAC_HEX));
    const expected = Buffer.from(this.#mac(text));
    return given.length === expected.length && timingSafeEqual(given, expected) ? textOf(text) : NO_ROLLOUT;
  }

  #mac(text: string): string {
    const mac = createHmac("sha256", this.#secret!).update(`rollbook.rollout-key.v1\0${text}`);
    return mac.digest("hex").slice(0, MAC_HEX);
  }
}

const NO_ROLLOUT: KeyText = { rollout: undefined, owner: undefined };

/** Parses `<rollout>` or `<rollout>@<gateway>`. */
function textOf(text: string): KeyText {
  const mark = text.lastIndexOf(OWNED_BY);
  if (mark < 0) return { rollout: text, owner: undefined };
  return { rollout: text.slice(0, mark), owner: text.slice(mark + 1) };
}

function keyIn(headers: IncomingHttpHeaders): string | undefined {
  const { authorization = "" } = headers;
  const bearer = authorization.startsWith("Bearer ")
    ? authorization.slice("Bearer ".length).trim() || undefined
    : /^Bearer\s+(.+)$/i.exec(authorization)?.[1]?.trim();
  const apiKey = headers["x-api-key"];
  return bearer ?? (typeof apiKey === "string" ? apiKey : undefined);
}

function headerOf(headers: IncomingHttpHeaders): string | undefined {
  const value = headers[ROLLOUT_HEADER];
  return typeof value === "string" ? value : undefined;
}

/** Key, header and path must name the same rollout. */
function oneOf(a: string | undefined, b: string | undefined, c: string | undefined): string | undefined {
  const id = a ?? b ?? c;
  if (id === undefined) return undefined;
  if ((b !== undefined && b !== id) || (c !== undefined && c !== id))
    throw new HttpRefusal(400, "two-rollouts", "key, header and path name different rollouts. Name one.");
  return id;
}

function refuseBadId(id: string): void {
  const fault = idFault(id);
  if (fault !== undefined) throw new HttpRefusal(400, "bad-id", `the rollout's id ${fault}.`);
}

function fingerprint(token: string): string {
  return hash("sha256", token, "hex");
}

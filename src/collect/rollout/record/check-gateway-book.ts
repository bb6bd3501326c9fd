/** Asks a gateway for the book it writes to, before the first rollout begins. In: the gateway's place, and the book in
 *  which the launch will look for artifacts. Out: nothing, or an error with the next step. With a gateway on another
 *  book, every call would be paid for and no rollout would ever be found. */
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isRollbookError, RollbookError, reasonOf } from "../../../base/index.ts";
import type { Book } from "../../../store/index.ts";
import type { RolloutDesk } from "../../rollout-desk.ts";

export interface GatewayPlace {
  /** `http://127.0.0.1:8790`, or several URLs separated by commas. One gateway that answers records a rollout. */
  readonly url: string;
  /** Required if the gateway demands a token. */
  readonly token?: string;
  /** A gateway in this process: rollouts are opened and closed without HTTP. */
  readonly desk?: RolloutDesk;
}

const TIMEOUT_MS = 10_000;
/** About three seconds in all if no server listens. */
const ATTEMPTS = 13;
const PAUSE_MS = 250;

/** A book, or the directory in which it is to be made. */
type BookPlace = Pick<Book, "root"> & Partial<Pick<Book, "id">>;

/** At least one of several gateways must answer, and every gateway that answers must write to this book. */
export async function checkGatewayBook(place: GatewayPlace, book: BookPlace): Promise<void> {
  const patience = { isOver: false };
  const checks = await Promise.allSettled(
    gatewayUrls(place).map((url) => checkOneBook({ ...place, url }, book, patience)),
  );
  const failures = checks.flatMap((check) => (check.status === "rejected" ? [check.reason as unknown] : []));
  const isAway = (error: unknown) => isRollbookError(error, "no-gateway");
  const wrong = failures.find((error) => !isAway(error));
  if (wrong !== undefined) throw wrong;
  if (failures.length === checks.length) throw failures[0];
}

/** Book that a running gateway writes to. */
export function gatewayBook(place: GatewayPlace): Promise<{ readonly id: string; readonly root: string }> {
  return bookOf({ ...place, url: gatewayUrls(place)[0]! }, { isOver: true });
}

/** Removes the trailing slash and the /v1 of base URLs. */
export function gatewayUrls({ url }: GatewayPlace): string[] {
  return url
    .split(",")
    .map((each) => each.trim().replace(/\/+(v1\/?)?$/, ""))
    .filter((each) => each !== "")
    .map(withScheme);
}

/** `localhost:8790` parses as a URL with the scheme localhost. */
function withScheme(url: string): string {
  if (/^https?:\/\//i.test(url)) return url;
  throw new RollbookError(
    "bad-url",
    { url },
    `${url} is not the URL of a gateway: it must begin with http:// or https://. Write http://${url.replace(/^.*:\/\//, "")}, for example.`,
  );
}

/** Set when one gateway has answered: we do not wait for the others. */
interface Patience {
  isOver: boolean;
}

async function checkOneBook(place: GatewayPlace, book: BookPlace, patience: Patience): Promise<void> {
  const { url } = place;
  const theirs = await bookOf(place, patience);
  const root = resolve(book.root);
  // A gateway started together with the launch may make the book first.
  if (book.id === undefined ? theirs.root === root : theirs.id === book.id) return;
  throw new RollbookError(
    "other-book",
    { url, gateway: theirs, book: { id: book.id, root } },
    `the gateway at ${url} writes to the book ${theirs.root} (${theirs.id}), these rollouts belong to ${root} (${book.id ?? "a new book"}). Start the gateway with --book ${root}, or use --book ${theirs.root} here.`,
  );
}

async function bookOf(place: GatewayPlace, patience: Patience): Promise<{ id: string; root: string }> {
  const { url } = place;
  const response = await ask(place, patience).catch((cause: unknown) => {
    throw new RollbookError(
      "no-gateway",
      { url },
      `the gateway at ${url} cannot be reached: ${reasonOf(cause)}. Start it with \`rollbook gateway --config FILE\`, or correct its URL.`,
      { cause },
    );
  });
  const text = await response.text();
  if (response.status === 401 || response.status === 403)
    throw new RollbookError(
      "gateway-refused",
      { url, status: response.status },
      `the gateway at ${url} does not accept the token: ${response.status} ${text.slice(0, 200)}. Give the one that is in its tokensEnv.`,
    );
  const book = response.ok ? read(text) : undefined;
  if (book !== undefined) return book;
  throw new RollbookError(
    "gateway-without-book",
    { url, status: response.status },
    `${url} does not say which book it writes to (GET /v1/book: ${response.status}): it is an older gateway, or none. Update it to this version of rollbook, or correct the URL.`,
  );
}

/** Waits a moment for a gateway that was started together with the launch. */
async function ask({ url, token }: GatewayPlace, patience: Patience): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    try {
      const response = await fetch(`${url}/v1/book`, {
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      patience.isOver = true;
      return response;
    } catch (error) {
      if (attempt === ATTEMPTS || patience.isOver || (error as Error).name === "TimeoutError") throw error;
      await sleep(PAUSE_MS);
    }
  }
}

function read(text: string): { id: string; root: string } | undefined {
  try {
    const { id, root } = JSON.parse(text) as { id?: unknown; root?: unknown };
    return typeof id === "string" && typeof root === "string" ? { id, root } : undefined;
  } catch {
    return undefined; // not JSON: another kind of server
  }
}

/** Serves the viewer on loopback: one page, and the data it requests.
 *  In: an open book, a token. Out: a listening server. Reads only. Every answer but the bare page needs the token. A
 *  foreign Host is refused, so that no other site can reach the server through its own name. */
import { timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isRollbookError } from "../../base/index.ts";
import { type OpenBook, readBlob } from "../../book/open/index.ts";
import {
  listRollouts,
  type RolloutQuery,
  type RolloutRow,
  type RolloutSummary,
  selectRows,
  summaryOf,
  windowOf,
} from "../../book/rollouts/index.ts";
import { listenOn } from "../../collect/index.ts";
import { readPage } from "./page.ts";
import { bookFacts, readBatches, readPageTranscript, readVerdicts } from "./read-page-data.ts";

interface Viewer {
  /** URL with the token, which the page removes from the address. */
  readonly url: string;
  close(): Promise<void>;
}

const MOST_ROWS = 1000;
const HEADERS = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
};

export async function serveViewer(
  book: OpenBook,
  {
    token,
    port = 0,
    contents,
  }: { token: string; port?: number | undefined; contents?: RolloutQuery["contents"] },
): Promise<Viewer> {
  const page = readPage();
  const source = new BookSource(book, contents);
  await source.load();
  const server = createServer((request, response) => {
    answer(request, response, { page, source, token }).catch((error: unknown) => {
      const known = isRollbookError(error);
      const status = known && error.code === "not-found" ? 404 : 500;
      sendJson(response, status, { error: known ? error.toJSON() : { message: String(error) } });
    });
  });
  await listenOn(server, { host: "127.0.0.1", port });
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${bound}/#token=${token}`,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

interface Answering {
  readonly page: string;
  readonly source: BookSource;
  readonly token: string;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { page, source, token }: Answering,
): Promise<void> {
  if (!/^(127\.0\.0\.1|localhost)(:\d+)?$/.test(request.headers.host ?? ""))
    return sendJson(response, 403, { error: { message: "not a name of this server" } });
  if (request.method !== "GET")
    return sendJson(response, 405, { error: { message: "this server only reads" } });
  const url = new URL(request.url ?? "/", "http://127.0.0.1");
  if (url.pathname === "/") return send(response, 200, { type: "text/html; charset=utf-8", body: page });
  const [, api, what, name] = url.pathname.split("/").map((part) => decodeURIComponent(part));
  if (api !== "api") return sendJson(response, 404, { error: { message: "no such page" } });
  if (!isToken(request.headers.authorization, token))
    return sendJson(response, 401, {
      error: { message: "the token is missing or wrong: open the address that was printed" },
    });
  if (what === "blobs" && name !== undefined) return sendBlob(response, await source.blob(name));
  const found = await source.ask(what ?? "", name, url.searchParams);
  if (found === undefined) return sendJson(response, 404, { error: { message: "no such page" } });
  sendJson(response, 200, found);
}

function isToken(header: string | undefined, token: string): boolean {
  const [given, wanted] = [Buffer.from(header ?? ""), Buffer.from(`Bearer ${token}`)];
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

/** Keeps the rows of the list in memory, so that scrolling through 100 000 rows does not read the catalog. */
class BookSource {
  readonly #book: OpenBook;
  readonly #contents: RolloutQuery["contents"];
  #rows: readonly RolloutRow[] = [];
  /** Rows of the last requested filters: the windows of one list are requested one after the other. */
  #selected: { key: string; rows: readonly RolloutRow[]; summary: RolloutSummary } | undefined;

  /** `contents`: lists only these rollouts (default: all). */
  constructor(book: OpenBook, contents: RolloutQuery["contents"]) {
    this.#book = book;
    this.#contents = contents;
  }

  async load(): Promise<void> {
    this.#rows = await listRollouts(this.#book, { contents: this.#contents });
    this.#selected = undefined;
  }

  async ask(what: string, name: string | undefined, query: URLSearchParams): Promise<unknown> {
    switch (what) {
      case "book":
        if (query.has("reload")) await this.load();
        return bookFacts(this.#book, this.#rows);
      case "rollouts":
        return name === undefined ? this.#window(query) : readPageTranscript(this.#book, name);
      case "batches":
        return readBatches(this.#book);
      case "verdicts":
        return readVerdicts(this.#book);
      default:
        return undefined;
    }
  }

  async blob(name: string): Promise<Uint8Array> {
    return (await readBlob(this.#book, name)).bytes;
  }

  #window(query: URLSearchParams) {
    const filters = pageQuery(query);
    const key = JSON.stringify(filters);
    if (this.#selected?.key !== key) {
      const rows = selectRows(this.#rows, filters);
      this.#selected = { key, rows, summary: summaryOf(rows) };
    }
    const { rows, summary } = this.#selected;
    const whole = (field: string, fallback: number) =>
      Math.max(0, Math.floor(Number(query.get(field) ?? fallback)) || 0);
    const [offset, limit] = [whole("offset", 0), Math.min(MOST_ROWS, whole("limit", 200))];
    return windowOf(this.#rows, rows, { offset, limit, summary });
  }
}

function pageQuery(query: URLSearchParams): RolloutQuery {
  const text = (name: string) => query.get(name) || undefined;
  const number = (name: string) =>
    Number.isFinite(Number(text(name) ?? Number.NaN)) ? Number(text(name)) : undefined;
  return {
    ...{ family: text("family"), group: text("group"), task: text("task"), experiment: text("experiment") },
    model: text("model"),
    ending: text("ending"),
    minScore: number("minScore"),
    sinceMs: number("sinceMs"),
  };
}

/** Bytes of records are never shown as a page: the browser saves them as a file. */
function sendBlob(response: ServerResponse, bytes: Uint8Array): void {
  response.setHeader("content-disposition", "attachment");
  send(response, 200, { type: "application/octet-stream", body: bytes });
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  send(response, status, { type: "application/json", body: JSON.stringify(value) });
}

function send(
  response: ServerResponse,
  status: number,
  { type, body }: { type: string; body: string | Uint8Array },
): void {
  if (response.headersSent) return;
  response.writeHead(status, { ...HEADERS, "content-type": type }).end(body);
}

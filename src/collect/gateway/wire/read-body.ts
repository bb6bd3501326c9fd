/** Reads a request's body, up to a limit. In: the request. Out: its bytes, or a refusal. */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { isObject, type JsonObject, MAX_NESTING, nestsDeeper, tryParse } from "../dialects/index.ts";
import { ChunkList } from "./chunk-list.ts";
import { HttpRefusal } from "./refusal.ts";

interface BodyReader {
  readonly limit: number;
  /** Reserves memory for this many more bytes. False if the limit is reached. */
  hold(bytes: number): boolean;
  done(body: Buffer): void;
  failed(refusal: HttpRefusal): void;
}

/** Calls either `done` with the body or `failed` with a refusal, once. */
export function readBody(request: IncomingMessage, { limit, hold, done, failed }: BodyReader): void {
  const length = request.headers["content-length"];
  const isTold = length !== undefined;
  const refusal = isTold ? bodyRefusal(Number(length), { limit, hold }) : undefined;
  if (refusal !== undefined) {
    failed(refusal);
    return;
  }
  const chunks = new ChunkList();
  let bytes = 0;
  let isRefused = false;
  const refuse = (refusal: HttpRefusal) => {
    isRefused = true;
    chunks.list.length = 0;
    failed(refusal);
  };
  request.on("data", (chunk: Buffer) => {
    if (isRefused) return;
    bytes += chunk.length;
    if (bytes > limit) refuse(tooLarge(limit));
    else if (!isTold && !hold(chunk.length)) refuse(tooMuch());
    else chunks.push(chunk);
  });
  request.on("end", () => {
    if (!isRefused) done(chunks.whole());
  });
  request.on("close", () => {
    if (!request.complete && !isRefused)
      failed(new HttpRefusal(400, "incomplete", "the request ended before its body did."));
  });
}

/** The refusal of a body of this size. Undefined if the body is accepted. */
export function bodyRefusal(
  bytes: number,
  { limit, hold }: Pick<BodyReader, "limit" | "hold">,
): HttpRefusal | undefined {
  if (bytes > limit) return tooLarge(limit);
  return hold(bytes) ? undefined : tooMuch();
}

export function parseBody(body: Buffer): JsonObject {
  return parseText(textOfBody(body));
}

/** Empty if the body is not UTF-8. */
export function textOfBody(body: Buffer): string {
  return isUtf8(body) ? body.toString() : "";
}

/** `text` is the text of a body. */
export function parseText(text: string): JsonObject {
  const value = tryParse(text);
  if (isObject(value)) return value;
  if (value === undefined && nestsDeeper(text))
    throw new HttpRefusal(400, "too-deep", `the body is nested more than ${MAX_NESTING} levels deep.`);
  if (value === undefined) throw new HttpRefusal(400, "bad-json", "the body is not JSON in UTF-8.");
  throw new HttpRefusal(400, "bad-json", "the body is not a JSON object.");
}

function tooMuch(): HttpRefusal {
  return new HttpRefusal(
    503,
    "too-much-in-flight",
    "the requests in progress hold as many bytes as the gateway takes (limits.inFlightBytes). Ask again in a moment.",
    { retry: true },
  );
}

function tooLarge(limit: number): HttpRefusal {
  return new HttpRefusal(413, "too-large", `the body is larger than ${limit} bytes.`);
}

/** Reads a request's body, up to a limit. In: the request. Out: its bytes, or a refusal. */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { isObject, type JsonObject, tryParse } from "../dialects/index.ts";
import { HttpRefusal } from "./refusal.ts";

/** Calls `done` with the body, or `failed` with a refusal; one of them, once. */
export function readBody(
  request: IncomingMessage,
  limit: number,
  { done, failed }: { done: (body: Buffer) => void; failed: (refusal: HttpRefusal) => void },
): void {
  if (Number(request.headers["content-length"] ?? 0) > limit) {
    failed(tooLarge(limit));
    return;
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= limit) chunks.push(chunk);
    else if (bytes - chunk.length <= limit) failed(tooLarge(limit));
  });
  request.on("end", () => {
    if (bytes <= limit) done(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
  });
  request.on("close", () => {
    if (!request.complete && bytes <= limit)
      failed(new HttpRefusal(400, "incomplete", "the request ended before its body did."));
  });
}

export function parseBody(body: Buffer): JsonObject {
  const value = isUtf8(body) ? tryParse(body.toString()) : undefined;
  if (value === undefined) throw new HttpRefusal(400, "bad-json", "the body is not JSON in UTF-8.");
  if (isObject(value)) return value;
  throw new HttpRefusal(400, "bad-json", "the body is not a JSON object.");
}

function tooLarge(limit: number): HttpRefusal {
  return new HttpRefusal(413, "too-large", `the body is larger than ${limit} bytes.`);
}

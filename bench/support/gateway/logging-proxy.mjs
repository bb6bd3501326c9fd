/** The cost of durability alone: the bare proxy, with each request and reply copied into a log that is on disk before
 *  the reply is forwarded. Parses nothing, knows no rollouts, keeps no counts.
 *  node logging-proxy.mjs UPSTREAM_PORT LOG_FILE: prints its port. */
import { constants, openSync, write, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { Pool } from "undici";

const [upstreamPort, logFile] = process.argv.slice(2);
const pool = new Pool(`http://127.0.0.1:${upstreamPort}`, { connections: 256, pipelining: 1 });
const NOT_PASSED = new Set(["host", "connection", "keep-alive", "transfer-encoding", "content-length"]);
const GATHERED = 16;
const BLOCK_BYTES = 1024 * 1024;

// Overwritten repeatedly: existing blocks are the cheapest to write.
const LOG_BYTES = 64 * BLOCK_BYTES;
writeFileSync(logFile, Buffer.alloc(LOG_BYTES), { flush: true });
const log = openSync(logFile, constants.O_WRONLY | constants.O_DSYNC);
let filling = Buffer.allocUnsafeSlow(BLOCK_BYTES);
let spare = Buffer.allocUnsafeSlow(BLOCK_BYTES);
let used = 0;
let waiting = [];
let isWriting = false;
let position = 0;

createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const headers = [];
    for (let i = 0; i < request.rawHeaders.length; i += 2)
      if (!NOT_PASSED.has(request.rawHeaders[i].toLowerCase()))
        headers.push(request.rawHeaders[i], request.rawHeaders[i + 1]);
    const body = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
    const reply = [];
    pool.dispatch(
      { method: request.method, path: request.url, headers, body },
      {
        onRequestStart() {},
        onResponseStart(_, status, back) {
          delete back["transfer-encoding"];
          delete back.connection;
          response.writeHead(status, back);
        },
        onResponseData(_, chunk) {
          // All pieces except the last are forwarded at once.
          if (reply.length > 0) response.write(reply.at(-1));
          reply.push(chunk);
        },
        onResponseEnd() {
          append([body, ...reply], () => response.end(reply.at(-1)));
        },
        onResponseError() {
          response.destroy();
        },
      },
    );
  });
}).listen(0, "127.0.0.1", function () {
  console.log(this.address().port);
});

function append(parts, onDisk) {
  for (const part of parts) used += part.copy(filling, used);
  waiting.push(onDisk);
  if (isWriting) return;
  isWriting = true;
  setImmediate(gather, 0);
}

/** Adds the requests of the next turns of the event loop to the same write. */
function gather(seen) {
  if (waiting.length > seen && waiting.length < GATHERED) setImmediate(gather, waiting.length);
  else writeAll();
}

function writeAll() {
  const [block, bytes, told] = [filling, used, waiting];
  [filling, used, waiting] = [spare, 0, []];
  write(log, block, 0, bytes, position, (error) => {
    if (error) throw error;
    spare = block;
    isWriting = waiting.length > 0;
    if (isWriting) setImmediate(gather, 0);
    for (const each of told) each();
  });
  position = position + bytes + BLOCK_BYTES > LOG_BYTES ? 0 : position + bytes;
}

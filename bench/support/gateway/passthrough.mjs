/** The reference: node:http in front, undici behind; it only passes bytes through.
 *  node passthrough.mjs UPSTREAM_PORT: prints its port. */
import { createServer } from "node:http";
import { Pool } from "undici";

const pool = new Pool(`http://127.0.0.1:${process.argv[2]}`, { connections: 256, pipelining: 1 });
const NOT_PASSED = new Set(["host", "connection", "keep-alive", "transfer-encoding", "content-length"]);

createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const headers = [];
    for (let i = 0; i < request.rawHeaders.length; i += 2)
      if (!NOT_PASSED.has(request.rawHeaders[i].toLowerCase()))
        headers.push(request.rawHeaders[i], request.rawHeaders[i + 1]);
    const body = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
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
          response.write(chunk);
        },
        onResponseEnd() {
          response.end();
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

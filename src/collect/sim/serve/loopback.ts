/** Serves a function from request to response over HTTP on loopback, for gateways in other processes.
 *  In: the function. Out: its URL. Passes only bodies in both directions, and forwards streams as they arrive. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { reasonOf } from "../../../base/index.ts";
import { HostCheck, isFromPage } from "../../host-check.ts";
import { listenOn } from "../../listen.ts";

export interface ServedUpstream {
  /** Includes /v1, as a gateway's `baseUrl` expects. */
  readonly url: string;
  close(): Promise<void>;
}

export async function serveOnLoopback(
  handle: (request: Request) => Promise<Response>,
  port = 0,
): Promise<ServedUpstream> {
  const hosts = new HostCheck("127.0.0.1", []);
  const server = createServer((request, response) => {
    if (isFromPage(request.headers, hosts)) {
      const refused = "web pages are not answered. Use the address that was printed.";
      response.writeHead(403, { "content-type": "application/json" }).end(failed(refused, "browser-refused"));
      return;
    }
    answer(handle, request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else
        response
          .writeHead(500, { "content-type": "application/json" })
          .end(failed(reasonOf(error), "internal"));
    });
  });
  await listenOn(server, { host: "127.0.0.1", port });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  handle: (request: Request) => Promise<Response>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = chunks.length === 0 ? undefined : Buffer.concat(chunks);
  const reply = await handle(
    new Request(`http://127.0.0.1${request.url ?? "/"}`, {
      method: request.method ?? "GET",
      headers: { "content-type": "application/json" },
      ...(body === undefined ? {} : { body }),
    }),
  );
  response.writeHead(reply.status, Object.fromEntries(reply.headers));
  for await (const chunk of reply.body ?? []) response.write(chunk);
  response.end();
}

function failed(message: string, code: string): string {
  return JSON.stringify({ error: { message, type: "server_error", code } });
}

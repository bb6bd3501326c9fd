/** `GET /metrics` of a process other than a gateway: a launcher, a worker, a loop. In: a listening address and a
 *  function that writes the page. Out: a server that ends with the process. The page has numbers, never content, and
 *  needs no token. On loopback the server refuses requests of web pages. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { RollbookError, reasonOf } from "../base/index.ts";
import { HostCheck, isFromPage, LOOPBACK } from "./host-check.ts";
import { listenOn } from "./listen.ts";

export interface MetricsServer {
  readonly url: string;
  close(): Promise<void>;
}

/** `address` is `9464` (on loopback) or `HOST:9464`. Undefined starts no server. */
export async function serveMetrics(
  address: string | undefined,
  page: () => string | Promise<string>,
): Promise<MetricsServer | undefined> {
  if (address === undefined) return undefined;
  const at = parseAddress(address);
  const hosts = LOOPBACK.test(at.host) ? new HostCheck(at.host, []) : undefined;
  const server = createServer(async (request, response) => {
    if (hosts !== undefined && isFromPage(request.headers, hosts)) {
      response.writeHead(403).end("web pages are not answered; use the address in the Host header\n");
      return;
    }
    if (request.url !== "/metrics") {
      response.writeHead(request.url === "/healthz" ? 200 : 404).end();
      return;
    }
    try {
      const text = await page();
      response.writeHead(200, { "content-type": "text/plain; version=0.0.4" }).end(text);
    } catch (error) {
      response.writeHead(500).end(`${reasonOf(error)}\n`);
    }
  });
  await listenOn(server, { ...at, flag: "--metrics" });
  server.unref();
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${at.host.includes(":") ? `[${at.host}]` : at.host}:${port}/metrics`,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

function parseAddress(address: string): { host: string; port: number } {
  const [, bracketed, plain, digits] = /^(?:(?:\[([^\]]+)\]|([^:]+)):)?(\d{1,5})$/.exec(address) ?? [];
  const port = Number(digits);
  if (digits !== undefined && port <= 65_535) return { host: bracketed ?? plain ?? "127.0.0.1", port };
  throw new RollbookError(
    "bad-address",
    { address },
    `${address} is not PORT or HOST:PORT. Give for example --metrics 9464.`,
  );
}

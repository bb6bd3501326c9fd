/** An HTTP proxy on loopback that throttles, delays or cuts requests to an S3 server. In: the port of the server. Out:
 *  its own port, and faults to set. Requests keep their headers, because the signature covers the host name. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse, request as send } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** `throttle`: the share of requests that get 503 SlowDown. `slow`: delay before each request, in milliseconds. `cut`:
 *  the proxy breaks the connection of matching requests before they arrive. */
export type BucketFault =
  | { readonly kind: "none" }
  | { readonly kind: "throttle"; readonly share: number }
  | { readonly kind: "slow"; readonly ms: number }
  | { readonly kind: "cut"; readonly at?: RegExp };

export interface BucketProxy {
  readonly port: number;
  /** Requests that met a fault. */
  readonly struck: number;
  /** Number of requests by operation: PUT, GET, LIST, HEAD, POST, DELETE. */
  readonly asked: ReadonlyMap<string, number>;
  fault: BucketFault;
  close(): Promise<void>;
}

const SLOW_DOWN =
  '<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>';

export async function startBucketProxy(target: number): Promise<BucketProxy> {
  const state = { fault: { kind: "none" } as BucketFault, struck: 0, turn: 0 };
  const asked = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const { fault } = state;
    const what = request.url?.includes("list-type=2") ? "LIST" : request.method!;
    asked.set(what, (asked.get(what) ?? 0) + 1);
    if (
      fault.kind === "throttle" &&
      Math.floor(++state.turn * fault.share) > Math.floor((state.turn - 1) * fault.share)
    ) {
      state.struck++;
      request.resume();
      response.writeHead(503, { "content-type": "application/xml", connection: "close" }).end(SLOW_DOWN);
      return;
    }
    if (
      fault.kind === "cut" &&
      (fault.at === undefined || fault.at.test(`${request.method} ${request.url}`))
    ) {
      state.struck++;
      request.socket.destroy();
      return;
    }
    if (fault.kind === "slow") {
      state.struck++;
      await sleep(fault.ms);
    }
    pass(request, response, target);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    get struck() {
      return state.struck;
    },
    get fault() {
      return state.fault;
    },
    set fault(fault: BucketFault) {
      state.fault = fault;
    },
    async close() {
      server.closeAllConnections();
      await once(server.close(), "close");
    },
  };
}

function pass(request: IncomingMessage, response: ServerResponse, port: number): void {
  const { method, url, rawHeaders } = request;
  const onward = send({ host: "127.0.0.1", port, method, path: url, headers: rawHeaders, setHost: false });
  const broken = () => request.socket.destroy();
  onward.on("error", broken);
  onward.on("response", (reply) => {
    reply.on("error", broken);
    response.writeHead(reply.statusCode!, reply.rawHeaders);
    reply.pipe(response);
  });
  onward.on("continue", () => response.writeContinue());
  response.on("error", () => {});
  request.on("error", () => {});
  response.on("close", () => onward.destroy());
  request.pipe(onward);
}

/** A TCP proxy on loopback that drops replies, or all traffic for a while. In: the port behind it. Out: its own port,
 *  and ways to cut. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export interface CuttingProxy {
  readonly port: number;
  readonly cuts: number;
  /** Cuts the connection at the next bytes from the server that contain `text`; these bytes do not arrive. */
  cutAt(text: string): void;
  /** Cuts every connection now, and accepts none for `ms` milliseconds. */
  cutFor(ms: number): Promise<void>;
  close(): Promise<void>;
}

export async function startCuttingProxy(target: number): Promise<CuttingProxy> {
  let armed: string | undefined;
  let cuts = 0;
  const open = new Set<Socket>();
  let isCut = false;
  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const upstream = connect(target, "127.0.0.1");
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        open.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream);
    upstream.on("data", (bytes) => {
      if (armed !== undefined && bytes.includes(armed)) {
        armed = undefined;
        cuts++;
        client.destroy();
      } else client.write(bytes);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    get cuts() {
      return cuts;
    },
    cutAt(text) {
      armed = text;
    },
    async cutFor(ms) {
      isCut = true;
      for (const socket of open) socket.destroy();
      await sleep(ms);
      isCut = false;
    },
    async close() {
      for (const socket of open) socket.destroy();
      await once(server.close(), "close");
    },
  };
}

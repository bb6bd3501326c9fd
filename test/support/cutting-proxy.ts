/** A TCP proxy on loopback that can lose answers: it cuts a connection the moment the server says something.
 *  In: the port behind it. Out: its own port, `cutAt` to arm it, `cuts` to see how often it cut. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface CuttingProxy {
  readonly port: number;
  readonly cuts: number;
  /** Cuts at the next bytes from the server that contain `text`; they do not arrive. */
  cutAt(text: string): void;
  close(): Promise<void>;
}

export async function startCuttingProxy(target: number): Promise<CuttingProxy> {
  let armed: string | undefined;
  let cuts = 0;
  const open = new Set<Socket>();
  const server = createServer((client) => {
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
    async close() {
      for (const socket of open) socket.destroy();
      await once(server.close(), "close");
    },
  };
}

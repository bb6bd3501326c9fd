/** Stands on the host while attacks run inside, and tells whether one of them got through: a secret file that
 *  must not be read or changed, a listener that no program may reach.
 *  In: nothing. Out: the bait to hand to the attacks, and the findings. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Witness {
  /** A file on the host, outside everything a task may see. */
  readonly secretPath: string;
  readonly secret: string;
  /** Listens on the host's loopback. */
  readonly port: number;
  /** What got through so far, in words; empty when nothing did. */
  findings(): string[];
  close(): Promise<void>;
}

export async function openWitness(): Promise<Witness> {
  const directory = mkdtempSync(join(tmpdir(), "rollbook-witness-"));
  const secretPath = join(directory, "secret");
  // Any text that cannot occur by chance; the directory's random name is one.
  const secret = `secret of ${directory}`;
  writeFileSync(secretPath, secret);
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    secretPath,
    secret,
    port: (server.address() as AddressInfo).port,
    findings: () => [
      ...(connections > 0 ? [`${connections} connections reached the host`] : []),
      ...(readFileSync(secretPath, "utf8") === secret ? [] : ["a file of the host was changed"]),
    ],
    close: async () => {
      await new Promise((resolve) => server.close(resolve));
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

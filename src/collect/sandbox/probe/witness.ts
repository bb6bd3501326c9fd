/** Observes from the host if an attack inside got out. It holds a secret file that must not be read or changed, and a
 *  listener that no program may reach. In: nothing. Out: the bait for the attacks, and the findings. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Witness {
  /** A file on the host, outside of all paths that a task may see. */
  readonly secretPath: string;
  readonly secret: string;
  /** Port of a listener on the host's loopback. */
  readonly port: number;
  /** Descriptions of the escapes so far. Empty if there are none. */
  findings(): string[];
  close(): Promise<void>;
}

export async function openWitness(): Promise<Witness> {
  const directory = mkdtempSync(join(tmpdir(), "rollbook-witness-"));
  const secretPath = join(directory, "secret");
  // A text that cannot occur by chance: the random name of the directory makes it unique.
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

/** Ports of loopback for servers that must know their port beforehand, or listen there a second time. */
import { once } from "node:events";
import { createServer } from "node:net";

/** No server listens on it: systems reserve it, and fetch does not refuse it as unsafe. */
export const CLOSED_URL = "http://127.0.0.1:2";

/** Below the range from which systems serve port 0 and outgoing connections. Ports of that range that were free a moment
 *  ago are given to tests in other processes. */
const FIRST = 10_000;
const COUNT = 22_000;

const given = new Set<number>();

/** A port that stays free until it is used, as far as other tests are concerned. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    return false;
  }
  await once(server.close(), "close");
  return true;
}

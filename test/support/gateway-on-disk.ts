/** A gateway in its own process, on a book in the given directory, which may be very small. Its upstream answers "ok".
 *  Lines on stdin: `start`, `stop`, `fill` (the disk, to the last byte), `free`. Each line gets one line of JSON on
 *  stdout. The gateway logs to stderr. */
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { systemClock } from "../../src/base/clock.ts";
import { rngFrom } from "../../src/base/rng.ts";
import { checkGatewayConfig, type Gateway, openGateway } from "../../src/collect/gateway/index.ts";
import { type Book, openBook } from "../../src/store/index.ts";

const directory = process.argv[2]!;
const filler = join(directory, "filler");
let running: { book: Book; gateway: Gateway } | undefined;
let ids = 0;

async function start() {
  const book = await openBook(join(directory, "book"), { clock: systemClock });
  const gateway = await openGateway({
    config: checkGatewayConfig({
      listen: { port: 0 },
      upstreams: { main: { baseUrl: "local:ok" } },
      defaultUpstream: "main",
    }),
    book,
    clock: systemClock,
    rng: rngFrom(1),
    newId: () => `r-${process.pid}-${++ids}`,
    env: {},
    log: (line) => process.stderr.write(`${line}\n`),
    local: { ok: () => Response.json({ choices: [{ message: REPLY, finish_reason: "stop" }] }) },
  });
  running = { book, gateway };
  return { url: gateway.url, recovered: gateway.recovered };
}

const REPLY = { role: "assistant", content: "ok" };

/** Closes the gateway and then the book. A failure of one close does not prevent the other. */
async function stop() {
  const { gateway, book } = running!;
  const failures: string[] = [];
  for (const end of [() => gateway.close(10_000, 100), () => book.close()])
    await end().catch((error: Error) => failures.push(error.message));
  return { failures };
}

/** Writes ever smaller pieces until not one byte fits. */
function fill() {
  const fd = openSync(filler, "a");
  let bytes = 0;
  for (let piece = 1 << 20; piece >= 1; ) {
    try {
      bytes += writeSync(fd, Buffer.alloc(piece));
    } catch {
      piece >>= 1;
    }
  }
  closeSync(fd);
  return { bytes };
}

const commands: Record<string, () => unknown> = {
  ...{ start, stop, fill },
  free: () => {
    rmSync(filler);
    return {};
  },
};

for await (const line of createInterface(process.stdin)) {
  const answer = await Promise.resolve(commands[line]!()).catch((error: Error) => ({ error: error.message }));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

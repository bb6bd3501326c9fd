/** The cost of many signed heads in a book: opening, verifying and garbage collection, before and after old heads are
 *  folded. A day of writing leaves one head per second, 86 400.
 *  `--heads N` sets their number; each command is its own process. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { manualClock } from "../src/base/index.ts";
import { identityOf } from "../src/book/collect/index.ts";
import { keyringOf } from "../src/book/open/index.ts";
import { MESSAGE_KIND, type UnsignedHead } from "../src/contract/index.ts";
import { openBook } from "../src/store/index.ts";
import { MAIN, requireBuild } from "./support/build.ts";
import { printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";
import { inTempFolder } from "./support/temp-folder.ts";

/** A module that writes processor time and memory to stderr when the process ends. */
const TELL_USAGE = `data:text/javascript,process.on("exit",()=>{const{userCPUTime:u,systemCPUTime:s,maxRSS}=process.resourceUsage();process.stderr.write("spent "+(u+s)+" "+maxRSS)})`;

export const bench: Bench = {
  summary: "verify, catalog and gc of a book with 80 000 signed heads",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: { heads: { type: "string", default: "80000" }, json: { type: "boolean" } },
    });
    requireBuild();
    await inTempFolder("rollbook-bench-heads-", async (folder) => {
      const book = join(folder, "book");
      await writeHeads(book, folder, Number(values.heads));
      const measured = (what: string, ...words: string[]) => ({
        ...{ what, heads: Number(values.heads) },
        ...measure([...words, "--book", book], folder),
      });
      const rows = [
        measured("first catalog (artifact ls)", "artifact", "ls"),
        measured("artifact ls", "artifact", "ls"),
        measured("verify", "verify"),
        measured("gc, which folds them", "gc"),
        measured("verify after gc", "verify"),
      ];
      printTable(rows, args);
    });
  },
};

async function writeHeads(root: string, home: string, count: number): Promise<void> {
  const clock = manualClock(1_700_000_000_000);
  // The key of the commands below, so that gc can fold.
  const { signer } = identityOf(keyringOf({ env: { ROLLBOOK_HOME: home }, home }));
  const sign = () => (head: UnsignedHead) => signer.signHead(head);
  const book = await openBook(root, { clock, sign });
  for (let i = 0; i < count; i++) {
    book.put(MESSAGE_KIND, Buffer.from(JSON.stringify({ content: `message ${i}`, role: "user" })));
    await book.head();
    clock.advance(1000);
  }
  await book.close();
}

function measure(words: readonly string[], folder: string) {
  const startMs = performance.now();
  const { status, stderr } = spawnSync(process.execPath, ["--import", TELL_USAGE, MAIN, ...words], {
    encoding: "utf8",
    env: { ...process.env, ROLLBOOK_HOME: folder },
    maxBuffer: 1e9,
  });
  const [, cpuUs, peakKib] = /spent (\d+) (\d+)$/.exec(stderr) ?? [];
  if (status !== 0) console.error(stderr);
  return {
    exit: String(status),
    seconds: (performance.now() - startMs) / 1000,
    "processor s": Number(cpuUs) / 1e6,
    "peak MiB": Math.round(Number(peakKib) / 1024),
  };
}

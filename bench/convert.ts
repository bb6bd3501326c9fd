/** Exports batches of two sizes to every trainer and trace format: rollouts per second of processor time, and peak
 *  memory of the user's command, which must not grow with the size. Books are made first and not timed. Traces are also
 *  read back.
 *  --formats a,b with --folder DIR measures a part and reuses the books in DIR. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../src/base/index.ts";
import { cutBatch, initBook, useBook } from "../src/book/index.ts";
import { type RolloutDraft, sealRollout } from "../src/contract/index.ts";
import { TRACE_FORMATS, TRAINER_FORMATS } from "../src/convert/formats/index.ts";
import { MAIN, requireBuild } from "./support/build.ts";
import { printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";
import { makeDraftAt, makeRevisions } from "./support/rollouts.ts";

const USAGE = new URL("./support/usage.mjs", import.meta.url).href;
const SHAPE = { tokens: 400, turns: 2, groupSize: 8, calls: 2 };

export const bench: Bench = {
  summary: "rollouts to every trainer and trace format: rows per processor second, peak memory at each size",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        rollouts: { type: "string", default: "1000,10000" },
        formats: { type: "string", default: TRAINER_FORMATS.join(",") },
        folder: { type: "string" },
        json: { type: "boolean", default: false },
      },
    });
    requireBuild();
    const scratch = values.folder ?? mkdtempSync(join(tmpdir(), "rollbook-bench-convert-"));
    try {
      const sizes = values.rollouts.split(",").map(Number);
      const books: SizedBook[] = [];
      for (const rollouts of sizes) books.push(await bookOf(scratch, rollouts));
      const formats = values.formats.split(",");
      const idle = measured(["--version"], scratch);
      const rows = formats.map((to) => inRow(to, books, (book) => written({ to, ...book })));
      const back = TRACE_FORMATS.filter((from) => formats.includes(from)).map((from) =>
        inRow(`${from}, read back`, books, (book) => readBack({ from, ...book })),
      );
      process.stderr.write(`rollbook --version: ${idle.peakMiB} MiB\n`);
      printTable([...rows, ...back], args);
    } finally {
      if (values.folder === undefined) rmSync(scratch, { recursive: true, force: true });
    }
  },
};

interface SizedBook {
  readonly rollouts: number;
  readonly book: string;
  readonly batch: string;
  readonly scratch: string;
}

/** With --folder a book is made once, so the formats can be measured in several runs. */
async function bookOf(folder: string, rollouts: number): Promise<SizedBook> {
  const scratch = join(folder, String(rollouts));
  const [book, mark] = [join(scratch, "book"), join(scratch, "batch")];
  if (!existsSync(mark)) {
    rmSync(scratch, { recursive: true, force: true });
    mkdirSync(scratch, { recursive: true });
    writeFileSync(mark, await makeBook(book, rollouts));
  }
  return { rollouts, book, scratch, batch: readFileSync(mark, "utf8") };
}

async function makeBook(root: string, rollouts: number): Promise<string> {
  await initBook(root);
  return useBook(root, { mode: "write", clock: systemClock }, async (book) => {
    for (const { kind, bytes } of makeRevisions()) book.store.put(kind, bytes);
    for (let i = 0; i < rollouts; i++) {
      for (const { kind, bytes } of sealRollout(draftAt(i)).blobs) book.store.put(kind, bytes);
      if (i % 500 === 499) await book.store.flush();
    }
    await book.store.flush();
    return (await cutBatch(book, { target: "r4", level: "token", freshness: "none" })).digest;
  });
}

/** Rollouts of a group have the same question, and every turn's tokens belong to a call. */
function draftAt(index: number): RolloutDraft {
  const draft = makeDraftAt(index, SHAPE);
  const question = { role: "user", content: `question of ${draft.group}: ${"some words ".repeat(20)}` };
  const calls = draft.calls.map((call) => ({
    ...call,
    request: { ...call.request, messages: [question, ...call.request.messages.slice(1)] },
  }));
  const streams = draft.streams.map((stream) =>
    stream.level === "step"
      ? stream
      : { ...stream, segments: stream.segments!.map((segment, call) => ({ ...segment, call })) },
  );
  return { ...draft, calls, streams };
}

interface Figures {
  readonly rows: number;
  /** Per second of processor time, over all threads. */
  readonly perSecond: number;
  readonly peakMiB: number;
  readonly bytes: number;
}

/** One row for each format, with the peak memory of every size. The peak must not grow with the size. */
function inRow(format: string, books: readonly SizedBook[], measure: (book: SizedBook) => Figures) {
  const found = books.map((book) => ({ ...measure(book), rollouts: book.rollouts }));
  const { rows, perSecond, bytes } = found.at(-1)!;
  return {
    ...{ format, rows, "rollouts/cpu s": Math.round(perSecond) },
    ...Object.fromEntries(found.map((each) => [`peak MiB at ${each.rollouts}`, each.peakMiB])),
    "file MiB": Math.round(bytes / 2 ** 20),
  };
}

function written({ to, book, batch, scratch, rollouts }: SizedBook & { to: string }): Figures {
  const out = join(scratch, to);
  rmSync(out, { force: true });
  const from = ["--to", to, "--batch", batch, "--book", book];
  const run = measured(
    ["data", "convert", ...from, "--out", out, ...(to === "trl-kto" ? ["--threshold", "0.5"] : []), "--json"],
    scratch,
  );
  const { rows } = JSON.parse(run.stdout) as { rows: number };
  return { rows, perSecond: rollouts / run.cpuSeconds, peakMiB: run.peakMiB, bytes: statSync(out).size };
}

function readBack({ from, scratch }: SizedBook & { from: string }): Figures {
  const out = join(scratch, `${from}.back`);
  rmSync(out, { force: true });
  const run = measured(
    ["data", "convert", "--from", from, join(scratch, from), "--out", out, "--json"],
    scratch,
  );
  const { rollouts } = JSON.parse(run.stdout) as { rollouts: number };
  const perSecond = rollouts / run.cpuSeconds;
  return { rows: rollouts, perSecond, peakMiB: run.peakMiB, bytes: statSync(out).size };
}

function measured(
  words: readonly string[],
  scratch: string,
): { cpuSeconds: number; peakMiB: number; stdout: string } {
  const usage = join(scratch, "usage.json");
  const stdout = execFileSync(process.execPath, ["--import", USAGE, MAIN, ...words], {
    encoding: "utf8",
    maxBuffer: 1 << 28,
    env: { ...process.env, ROLLBOOK_USAGE: usage },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { peakMiB, cpuSeconds } = JSON.parse(readFileSync(usage, "utf8")) as {
    peakMiB: number;
    cpuSeconds: number;
  };
  return { cpuSeconds, peakMiB: Math.round(peakMiB), stdout };
}

/** A batch of many rollouts handed over to every trainer and trace format: rows a second and peak memory of the command,
 *  as users run it. The book is made first and is not timed. Traces are read back, too. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
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

const USAGE = new URL("./routers/usage.mjs", import.meta.url).href;
const SHAPE = { tokens: 400, turns: 2, groupSize: 8, calls: 2 };

export const bench: Bench = {
  summary: "rollouts to every trainer and trace format: rows a second, peak memory, size",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: { rollouts: { type: "string", default: "10000" }, json: { type: "boolean", default: false } },
    });
    requireBuild();
    const scratch = mkdtempSync(join(tmpdir(), "rollbook-bench-convert-"));
    try {
      const book = join(scratch, "book");
      const batch = await makeBook(book, Number(values.rollouts));
      const idle = measured(["--version"], scratch);
      const rows = TRAINER_FORMATS.map((to) =>
        written({ to, book, batch, scratch, rollouts: Number(values.rollouts) }),
      );
      const back = TRACE_FORMATS.map((from) => readBack({ from, scratch }));
      printTable(
        [
          { format: "(rollbook --version)", rows: 0, "rollouts/s": 0, "peak MiB": idle.peakMiB, MiB: 0 },
          ...rows,
          ...back,
        ],
        args,
      );
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  },
};

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

/** Rollouts of a group are asked the same, and every turn's tokens belong to a call. */
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

interface FormatFigures extends Readonly<Record<string, string | number>> {
  readonly format: string;
  readonly rows: number;
  readonly "rollouts/s": number;
  readonly "peak MiB": number;
  readonly MiB: number;
}

function written(of: {
  to: string;
  book: string;
  batch: string;
  scratch: string;
  rollouts: number;
}): FormatFigures {
  const { to, book, batch, scratch, rollouts } = of;
  const out = join(scratch, to);
  const words = [
    "data",
    "convert",
    "--to",
    to,
    "--batch",
    batch,
    "--book",
    book,
    "--out",
    out,
    "--threshold",
    "0.5",
    "--json",
  ];
  const { seconds, peakMiB, stdout } = measured(words, scratch);
  const { rows } = JSON.parse(stdout) as { rows: number };
  return figures(to, { rows, perSecond: rollouts / seconds, peakMiB, bytes: statSync(out).size });
}

function readBack({ from, scratch }: { from: string; scratch: string }): FormatFigures {
  const out = join(scratch, `${from}.back`);
  const { seconds, peakMiB, stdout } = measured(
    ["data", "convert", "--from", from, join(scratch, from), "--out", out, "--json"],
    scratch,
  );
  const { rollouts } = JSON.parse(stdout) as { rollouts: number };
  return figures(`${from}, read back`, {
    rows: rollouts,
    perSecond: rollouts / seconds,
    peakMiB,
    bytes: statSync(out).size,
  });
}

function figures(
  format: string,
  { rows, perSecond, peakMiB, bytes }: { rows: number; perSecond: number; peakMiB: number; bytes: number },
): FormatFigures {
  return {
    format,
    rows,
    "rollouts/s": Math.round(perSecond),
    "peak MiB": Math.round(peakMiB),
    MiB: Math.round(bytes / 2 ** 20),
  };
}

function measured(
  words: readonly string[],
  scratch: string,
): { seconds: number; peakMiB: number; stdout: string } {
  const usage = join(scratch, "usage.json");
  const began = performance.now();
  const stdout = execFileSync(process.execPath, ["--import", USAGE, MAIN, ...words], {
    encoding: "utf8",
    maxBuffer: 1 << 28,
    env: { ...process.env, ROLLBOOK_USAGE: usage },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const seconds = (performance.now() - began) / 1000;
  const { peakMiB } = JSON.parse(readFileSync(usage, "utf8")) as { peakMiB: number };
  return { seconds, peakMiB: Math.round(peakMiB), stdout };
}

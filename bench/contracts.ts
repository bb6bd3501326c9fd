/** Sealing, verifying and assembling at scale, each compared with a limit of the same machine in the same run.
 *  Runs the compiled package. Verifying runs in its own process, so that its memory is measured alone. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { systemClock } from "../src/base/clock.ts";
import type { Book } from "../src/store/index.ts";
import { built, compiledModules } from "./support/build.ts";
import { median, printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";
import { FAMILY, makeDraftAt, makeRevisions, type RolloutShape } from "./support/rollouts.ts";

export const bench: Bench = {
  summary:
    "verify against plain SHA-256, durable sealing per second, assembly from 1 000 to 100 000 artifacts",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        json: { type: "boolean", default: false },
        only: { type: "string", default: "seal,verify,assemble" },
        artifacts: { type: "string", default: "20000" },
        largest: { type: "string", default: "100000" },
      },
    });
    const parts = values.only.split(",");
    if (parts.includes("seal") || parts.includes("verify"))
      await sealAndVerify(Number(values.artifacts), parts, args);
    if (parts.includes("assemble")) await assembleGrowing(Number(values.largest), args);
  },
};

/** About 50 KB: 17 bytes per token in five columns, the rest records. */
const SHAPE: RolloutShape = { tokens: 2850, turns: 4, groupSize: 8, calls: 0 };

async function sealAndVerify(artifacts: number, parts: string[], args: string[]): Promise<void> {
  for (const shape of [SHAPE, { ...SHAPE, tokens: 2450, calls: 4 }]) {
    await inTempBook(async (directory) => {
      const sealed = await sealMany(directory, artifacts, shape);
      const label = shape.calls === 0 ? "token streams" : `with ${shape.calls} calls`;
      if (parts.includes("seal"))
        printTable(
          [
            {
              sealing: label,
              artifacts,
              seconds: sealed.seconds,
              "artifacts/s": artifacts / sealed.seconds,
              "bar, artifacts/s": 3000,
            },
          ],
          args,
        );
      if (parts.includes("verify")) compareVerify(directory, label, artifacts, args);
    });
  }
}

/** 64 rollouts run at once, as from 64 workers. Timed from a draft in memory (numbers in typed arrays) to a signed
 *  artifact on disk. Generating the drafts runs on the same thread and is not counted. */
async function sealMany(
  directory: string,
  artifacts: number,
  shape: RolloutShape,
): Promise<{ seconds: number }> {
  const { openBook, makeSealer, sealRollout, newKeyPem, signerFromPem } = await product();
  const book = await openBook(directory, { clock: systemClock });
  const sealer = makeSealer(book, signerFromPem(newKeyPem()));
  for (const revision of makeRevisions()) book.put(revision.kind, revision.bytes);
  let inventingMs = 0;
  let next = 0;
  const worker = async () => {
    while (next < artifacts) {
      const index = next++;
      const before = performance.now();
      const draft = makeDraftAt(index, shape);
      inventingMs += performance.now() - before;
      await sealer.add(sealRollout(draft));
    }
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: 64 }, worker));
  const seconds = (performance.now() - start - inventingMs) / 1000;
  await book.close();
  return { seconds };
}

interface Cost {
  wallMs: number;
  cpuMs: number;
}

interface Race {
  bytes: number;
  plain: Cost[];
  ours: Cost[];
  signed: number;
  peakBytes: number;
}

function compareVerify(directory: string, label: string, artifacts: number, args: string[]): void {
  const program = fileURLToPath(new URL("support/verify-race.mjs", import.meta.url));
  const printed = execFileSync(process.execPath, [program, compiledModules(), directory, "3"], {
    encoding: "utf8",
  });
  const { bytes, plain, ours, signed, peakBytes } = JSON.parse(printed) as Race;
  if (signed !== artifacts) throw new Error(`${signed} of ${artifacts} artifacts are signed`);
  const wall = (costs: Cost[]) => median(costs.map((cost) => cost.wallMs));
  const cpu = (costs: Cost[]) => median(costs.map((cost) => cost.cpuMs));
  printTable(
    [
      {
        verifying: label,
        artifacts,
        threads: 1,
        MB: bytes / 1e6,
        "sha256 MB/s": bytes / wall(plain) / 1000,
        "verify MB/s": bytes / wall(ours) / 1000,
        ratio: wall(plain) / wall(ours),
        "ratio of CPU time": cpu(plain) / cpu(ours),
        bar: 0.5,
        "peak RSS MB": peakBytes / 1e6,
      },
    ],
    args,
  );
}

async function assembleGrowing(largest: number, args: string[]): Promise<void> {
  const rows: Record<string, string | number>[] = [];
  for (let artifacts = 1000; artifacts <= largest; artifacts *= 10) {
    await inTempBook(async (directory) => {
      const shape = { tokens: 200, turns: 2, groupSize: 8, calls: 0 };
      const { openBook, sealManifest, assembleBatch } = await product();
      const book = await openBook(directory, { clock: systemClock });
      const revisions = makeRevisions();
      for (const revision of revisions) book.put(revision.kind, revision.bytes);
      const listed = await putRollouts(book, artifacts, shape);
      const manifest = sealManifest({ artifacts: listed, revisions: revisions.map((each) => each.digest) });
      book.put(manifest.kind, manifest.bytes);
      await book.flush();
      const memory = peakMemory();
      const start = performance.now();
      const batch = await assembleBatch({
        read: (digest) => book.get(digest),
        write: (blob) => book.put(blob.kind, blob.bytes),
        manifest: manifest.digest,
        target: revisions.at(-1)!.digest,
        selection: { level: "token", family: FAMILY },
        seed: 1n,
        onProgress: memory.look,
      });
      await book.flush();
      const seconds = (performance.now() - start) / 1000;
      rows.push({
        artifacts,
        tokens: batch.record.tokens,
        seconds,
        "µs/artifact": (seconds * 1e6) / artifacts,
        "peak RSS MB": memory.peak() / 1e6,
        bar: artifacts === 100_000 ? "60 s" : "",
      });
      await book.close();
    });
  }
  printTable(rows, args);
}

async function putRollouts(book: Book, artifacts: number, shape: RolloutShape) {
  const { sealRollout } = await product();
  const listed = [];
  for (let i = 0; i < artifacts; i++) {
    const rollout = sealRollout(makeDraftAt(i, shape));
    for (const blob of rollout.blobs) book.put(blob.kind, blob.bytes);
    listed.push({ content: rollout.content.digest, envelope: rollout.envelope.digest });
    if (i % 256 === 0) await book.flush();
  }
  await book.flush();
  return listed;
}

/** Reading the resident size is slow, so only every thousandth look reads it. */
function peakMemory(): { look: () => void; peak: () => number } {
  let looks = 0;
  let peakBytes = 0;
  return {
    look() {
      if (looks++ % 1000 === 0) peakBytes = Math.max(peakBytes, process.memoryUsage.rss());
    },
    peak: () => peakBytes,
  };
}

async function inTempBook(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), `rollbook-bench-${randomBytes(4).toString("hex")}-`));
  try {
    await work(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The compiled modules under measurement, as shipped. */
async function product() {
  return {
    ...(await built<typeof import("../src/contract/index.ts")>("contract/index.js")),
    ...(await built<typeof import("../src/store/index.ts")>("store/index.js")),
    ...(await built<typeof import("../src/store/sealer.ts")>("store/sealer.js")),
    ...(await built<typeof import("../src/keep/batch/index.ts")>("keep/batch/index.js")),
  };
}

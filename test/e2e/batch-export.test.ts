import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { python } from "../../scripts/python.mjs";
import * as requirement from "../../scripts/setup/python-arrow.mjs";
import { Cli } from "../support/cli.ts";
import { demoBook } from "../support/demo-book.ts";
import { describeNeeding } from "../support/needs.ts";
import { type ReadBack, readJsonl, readNpz, readParquet, readSafetensors } from "../support/read-exports.ts";

const READERS: Record<string, (path: string) => ReadBack | Promise<ReadBack>> = {
  jsonl: readJsonl,
  npz: readNpz,
  safetensors: readSafetensors,
  parquet: readParquet,
};

/** The demo's book, which has a token batch and a step batch. */
async function batchesOfDemo(): Promise<{ cli: Cli; batches: { level: string; digest: string }[] }> {
  const cli = await demoBook();
  const all = await cli.json("batch show");
  return { cli, batches: all.map(({ digest, selection }) => ({ digest, level: selection.level })) };
}

it("batch show counts the rollouts with a proof, of which two can be equal", async () => {
  const cli = new Cli();
  await cli.ok("init");
  for (const file of ["rollouts", "two-rollouts"]) await cli.ok(`artifact import examples/${file}.jsonl`);
  const words = "batch assemble --target writer-r3 --level token";
  expect(await cli.ok(words)).toMatch(/^ {2}rows +29 .*\n(.*\n)* {2}proofs +27 of 29 rollouts with a proof/m);
});

it("batch show calls steps and sampled tokens samples where its ledger counts both", async () => {
  const { cli, batches } = await batchesOfDemo();
  for (const { digest, level } of batches) {
    const text = await cli.ok(`batch show ${digest}`);
    const own = level === "step" ? "STEPS" : "SAMPLED TOKENS";
    expect(text).toMatch(
      new RegExp(`SOURCE +DRIFT +ROWS +${own} .*\n(.*\n)* +EXCLUDED AS +STREAMS +SAMPLES +TOKENS`),
    );
  }
});

describe("rollbook batch export", () => {
  it("writes what batch show counts, in every format and at both levels", async () => {
    const { cli, batches } = await batchesOfDemo();
    expect(new Set(batches.map(({ level }) => level))).toEqual(new Set(["token", "step"]));
    for (const { digest } of batches) {
      const [{ batch }] = await cli.json(`batch show ${digest}`);
      const seen: unknown[] = [];
      for (const [format, read] of Object.entries(READERS)) {
        const out = join(cli.folder, `${digest.slice(7, 19)}.${format}`);
        const [said] = await cli.json(`batch export ${digest} --format ${format} --out ${out}`);
        const { rows, samples } = batch.totals;
        expect(said).toEqual({ batch: digest, format, out, rows, samples, bytes: readFileSync(out).length });
        const found = await read(out);
        expect(found.provenance).toMatchObject({ batch: digest, manifest: batch.manifest, seed: batch.seed });
        expect(found.rows).toHaveLength(rows);
        seen.push(found.rows);
      }
      for (const rows of seen) expect(rows).toEqual(seen[0]);
    }
  });

  it("refuses an unknown batch or format, an existing file and a missing folder, else says what it wrote", async () => {
    const { cli, batches } = await batchesOfDemo();
    const { digest } = batches[0]!;
    const taken = cli.file("taken.npz", "mine");
    const out = join(cli.folder, "out");
    const refused = async (words: string, code: number, error: string) =>
      expect(await cli.run(words)).toMatchObject({ code, out: "", err: expect.stringContaining(error) });
    await refused(`batch export 123456 --format npz --out ${out}`, 1, "not-found");
    await refused(`batch export ${digest} --format arrow --out ${out}`, 2, "Allowed choices are jsonl, npz");
    await refused(`batch export ${digest} --format npz`, 2, "--out");
    await refused(
      `batch export ${digest} --out ${out}.bin`,
      2,
      "Give --format, or end the name with .jsonl, .npz",
    );
    expect(await cli.ok(`batch export ${digest} --out ${join(cli.folder, "inferred.npz")}`)).toContain(
      "inferred.npz: ",
    );
    const misnamed = join(cli.folder, "misnamed.parquet");
    expect((await cli.run(`batch export ${digest} --format npz --out ${misnamed}`)).err).toBe(
      `warning: ${misnamed} is written as npz, although its name ends in .parquet\n`,
    );
    await refused(`batch export ${digest} --format npz --out ${taken}`, 1, "[exists]");
    await refused(`batch export ${digest} --format npz --out ${out}/x.npz`, 1, "Create it");
    expect(readFileSync(taken, "utf8")).toBe("mine");
    expect(await cli.ok(`batch export ${digest} --format npz --out ${out}.npz`)).toMatch(
      /out\.npz: \d+ rows with \d+ samples of batch [0-9a-f]{12} \(/,
    );
  });

  it("names the damage of a damaged shard and leaves no file behind", async () => {
    const { cli, batches } = await batchesOfDemo();
    const { digest } = batches.find(({ level }) => level === "token")!;
    const out = join(cli.folder, "whole.jsonl");
    await cli.ok(`batch export ${digest} --format jsonl --out ${out}`);
    const ids = readJsonl(out).rows.flatMap((row) => row.ids as number[]);
    flip(join(cli.book, "packs"), Buffer.from(Uint32Array.from(ids).buffer));
    for (const format of Object.keys(READERS)) {
      const before = readdirSync(cli.folder);
      const { code, err } = await cli.run([
        ...["batch", "export", digest, "--format", format],
        ...["--out", join(cli.folder, `damaged.${format}`)],
      ]);
      expect([code, err]).toEqual([1, expect.stringMatching(/damage|digest|corrupt/)]);
      expect(readdirSync(cli.folder)).toEqual(before);
    }
  });
});

/** Changes a byte of the first occurrence of `wanted` in each file of a folder. */
function flip(folder: string, wanted: Buffer): void {
  let found = 0;
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const bytes = readFileSync(path);
    const at = bytes.indexOf(wanted);
    if (at < 0) continue;
    bytes[at] = bytes[at]! ^ 1;
    writeFileSync(path, bytes);
    found++;
  }
  expect(found).toBeGreaterThan(0);
}

await describeNeeding(requirement, "examples/read_batch.py", () => {
  it("prints the totals of batch show, from every format it reads", async () => {
    const { cli, batches } = await batchesOfDemo();
    for (const { digest } of batches) {
      const [{ batch }] = await cli.json(`batch show ${digest}`);
      for (const format of ["npz", "parquet", "jsonl"]) {
        const out = join(cli.folder, `${digest.slice(7, 19)}.${format}`);
        await cli.ok(`batch export ${digest} --format ${format} --out ${out}`);
        const { status, stdout, stderr } = spawnSync(python, ["examples/read_batch.py", out, cli.book], {
          encoding: "utf8",
          env: { ...process.env, PYTHONPATH: resolve("python") },
        });
        expect([status, stderr]).toEqual([0, ""]);
        const { rows, samples, rewardSum, advantageSum } = batch.totals;
        const found = JSON.parse(stdout);
        expect(found).toMatchObject({ batch: digest, rows, samples });
        expect(found.rewardSum).toBeCloseTo(rewardSum, 9);
        expect(found.advantageSum).toBeCloseTo(advantageSum, 9);
      }
    }
  });
});

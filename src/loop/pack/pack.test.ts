import { copyFileSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ablationPack, benchPack, loopPack, SUITE } from "../../../bench/support/small-packs.ts";
import type { Digest } from "../../base/index.ts";
import { packPaths, readPack, readTar, sealPackFolder, writeTar } from "../../keep/pack/index.ts";
import { readLastHead } from "../../store/index.ts";
import { ablate, parseSuite } from "../bench/index.ts";
import { brokenLinks, rerunPack, sealBenchPack, sealLoopPack, verifyPack } from "./index.ts";

const folder = mkdtempSync(join(tmpdir(), "rollbook-pack-test-"));
const packs = { bench: "", loop: "", ablation: "" };
beforeAll(async () => {
  packs.bench = await benchPack(join(folder, "bench"));
  packs.loop = await loopPack(join(folder, "loop"));
  packs.ablation = await ablationPack(join(folder, "ablation"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const rerun = (pack: string) => rerunPack(pack, { work: mkdtempSync(join(folder, "rerun-")), log: () => {} });

/** For a test that changes it. */
function copyOf(kind: keyof typeof packs): string {
  const pack = mkdtempSync(join(folder, "copy-"));
  cpSync(packs[kind], pack, { recursive: true });
  return pack;
}

const REACHED = {
  bench: ["log 1", "checkpoint ucb"],
  loop: ["window 2", "batch", "12 rollouts"],
  ablation: ["cell cost-1-latency-1-decisions-30", "cell cost-0-latency-1-decisions-60"],
};

describe.each(["bench", "loop", "ablation"] as const)("a pack of a %s", (kind) => {
  it("verifies, and its chain reaches down to what was trained on", async () => {
    const { chain, signers } = await verifyPack(packs[kind]);
    expect(brokenLinks(chain)).toEqual([]);
    expect(signers).toHaveLength(1);
    const text = JSON.stringify(chain);
    for (const what of REACHED[kind]) expect(text).toContain(what);
  });

  it("gives the same results when it is run again", async () => {
    const { differences } = await rerun(packs[kind]);
    expect(differences).toEqual([]);
  }, 60_000);

  it("is the same bytes as a tar file, and the same pack when unpacked", async () => {
    const [one, two] = [join(folder, `${kind}-1.tar`), join(folder, `${kind}-2.tar`)];
    for (const file of [one, two]) writeTar(file, packs[kind], packPaths(packs[kind]));
    expect(readFileSync(one).equals(readFileSync(two))).toBe(true);
    expect(() => writeTar(one, packs[kind], packPaths(packs[kind]))).toThrow(/already exists\. Name another/);
    const unpacked = mkdtempSync(join(folder, "untar-"));
    readTar(one, unpacked);
    expect(brokenLinks((await verifyPack(unpacked)).chain)).toEqual([]);
  });
});

it("a loop of an earlier version, whose digest bound the workers, is packed, verified and run again", async () => {
  // Digest written by the last version that covered `workers`.
  const digest = "sha256:f629f51fb4e5d00ed12bf81f4e90e7abbca5351132bf5307e792551ecd2010a4" as Digest;
  const pack = await loopPack(join(folder, "earlier"), { more: "workers: 3\n", digest });
  expect(readPack(pack).record.run.digest).toBe(digest);
  expect(brokenLinks((await verifyPack(pack)).chain)).toEqual([]);
  expect((await rerun(pack)).differences).toEqual([]);
}, 60_000);

it.each([1, 3])("a pack of a loop of 2 windows is refused if its configuration sets %i", async (windows) => {
  const pack = copyOf("loop");
  const file = join(pack, "loop.yaml");
  writeFileSync(file, readFileSync(file, "utf8").replace("windows: 2", `windows: ${windows}`));
  const { run, command, code, node, machine, sealedAtMs } = readPack(pack).record;
  for (const own of ["pack.json", "signatures"]) rmSync(join(pack, own), { recursive: true });
  sealPackFolder(pack, { run, command, code, node, machine, sealedAtMs }, undefined);
  const broken = brokenLinks((await verifyPack(pack)).chain);
  expect(broken.map(({ path }) => path)).toEqual(["pack small → results"]);
  expect(broken[0]!.broken).toMatch(
    /the book has 2 ended windows of the run, and loop.yaml sets windows: [13]/,
  );
});

it("a loop whose configuration sets fewer windows than have ended is not packed", async () => {
  const fewer = join(folder, "loop", "fewer.yaml");
  const source = readFileSync(join(folder, "loop", "loop.yaml"), "utf8");
  writeFileSync(fewer, source.replace("windows: 2", "windows: 1"));
  const out = join(folder, "fewer");
  await expect(sealLoopPack(fewer, { out })).rejects.toThrow(/sets windows: 1, but window 2 .* has begun/);
  expect(existsSync(out)).toBe(false);
});

it("a loop whose gate could never release a policy is packed, verified and run again", async () => {
  const more = "gate: { method: empirical-bernstein, epsilonCost: 0 }\n";
  const pack = await loopPack(join(folder, "hopeless"), { more });
  expect(brokenLinks((await verifyPack(pack)).chain)).toEqual([]);
  expect((await rerun(pack)).differences).toEqual([]);
}, 60_000);

it("the book in a pack of a loop knows its last head, as the loop left it", () => {
  const last = readLastHead(join(folder, "loop", "work"));
  expect(last).toMatch(/^sha256:/);
  expect(readLastHead(join(packs.loop, "book"))).toBe(last);
});

it("a loop that cannot be packed leaves nothing at --out", async () => {
  const [home, below] = [join(folder, "loop"), mkdtempSync(join(folder, "loop", "below-"))];
  const file = join(below, "loop.yaml");
  writeFileSync(file, readFileSync(join(home, "loop.yaml"), "utf8").replace(": tasks", ": ../tasks"));
  const out = join(folder, "refused-loop");
  await expect(sealLoopPack(file, { out, book: join(home, "work") })).rejects.toMatchObject({
    code: "not-packable",
  });
  expect(existsSync(out)).toBe(false);
});

it("a result that was edited and listed again is not what the checkpoints give", async () => {
  const pack = copyOf("bench");
  const file = join(pack, "results.json");
  writeFileSync(file, readFileSync(file, "utf8").replace(/"gapClosed":[^,]+/, '"gapClosed":0.99'));
  const broken = brokenLinks((await verifyPack(pack)).chain);
  expect(broken.map(({ path }) => path)).toEqual(["pack small → files", "pack small → results"]);
  expect(broken[1]!.broken).toContain("figures are not those");
});

it.each([
  ["answers of an arm", "choices", /figures are not those that the tasks and the answers/],
  ["the digest of a log", "log", /^log 0 is sha256:0+, and sha256/],
])("an ablation whose cell has %s changed does not verify", async (_, key, message) => {
  const pack = copyOf("ablation");
  const file = join(pack, "cells/cost-1-latency-1-decisions-60.json");
  const [first, ...rest] = JSON.parse(readFileSync(file, "utf8"));
  if (key === "log") first.log = `sha256:${"0".repeat(64)}`;
  else first.arms[1].choices[0] = [...first.arms[1].choices[0]].reverse();
  writeFileSync(file, `${JSON.stringify([first, ...rest])}\n`);
  const broken = brokenLinks((await verifyPack(pack)).chain);
  expect(broken[0]!.path).toBe("pack small → files");
  expect(broken.at(-1)!.broken).toMatch(message);
});

it("in an ablation a floor trains nothing: both arms name one checkpoint, and floor 1 plays the table", async () => {
  const own = join(folder, "floors");
  const suite = parseSuite(SUITE, "suite.yaml", join(folder, "ablation"));
  const varied = { decisions: [40], floors: [0, 1], costWeights: [1], latencyWeights: [1] };
  const { rows } = await ablate(suite, varied, { folder: own, source: SUITE });
  const arm = (name: string) => rows.find((row) => row.arm.name === name)!.arm;
  expect(arm("ucb-floor-1").checkpoints).toEqual(arm("ucb-floor-0").checkpoints);
  expect(arm("ucb-floor-1").exact).toEqual(arm("table").exact);
});

it("an ablation refuses lists that it cannot run", async () => {
  const suite = parseSuite(SUITE, "suite.yaml", join(folder, "ablation"));
  const good = { decisions: [40], floors: [0], costWeights: [1], latencyWeights: [1] };
  const run = (bad: object) =>
    ablate(suite, { ...good, ...bad }, { folder: join(folder, "refused"), source: SUITE });
  await expect(run({ decisions: [5] })).rejects.toThrow(/whole numbers of 10 or more/);
  await expect(run({ floors: [1.5] })).rejects.toThrow(/between 0 and 1/);
  await expect(run({ costWeights: [1, 1] })).rejects.toThrow(/costWeights lists a value twice/);
  expect(existsSync(join(folder, "refused"))).toBe(false);
});

it("a pack with a changed input is not run again; sealed with it, it says which figures differ", async () => {
  const pack = copyOf("bench");
  const file = join(pack, "suite.yaml");
  const source = readFileSync(file, "utf8").replace("decisions: 60", "decisions: 61");
  writeFileSync(file, source);
  await expect(rerun(pack)).rejects.toMatchObject({
    code: "broken-pack",
    message: expect.stringContaining("suite.yaml is changed."),
  });
  for (const own of ["pack.json", "signatures"]) rmSync(join(pack, own), { recursive: true });
  sealBenchPack(pack, parseSuite(source, "suite.yaml", pack));
  const { differences } = await rerun(pack);
  expect(differences).toContain("decisions");
});

it.each([
  ["a path outside the pack", "../evil\0", 0, /outside the pack/],
  ["a length of 8 GiB that it does not have", "77777777777\0", 124, /is cut short/],
])("a tar file with %s is refused", (_, text, at, message) => {
  const bad = join(folder, "bad.tar");
  copyFileSync(join(folder, "bench-1.tar"), bad);
  const bytes = readFileSync(bad);
  bytes.write(text, at, "latin1");
  let sum = 0;
  bytes.fill(" ", 148, 156);
  for (let i = 0; i < 512; i++) sum += bytes[i]!;
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  writeFileSync(bad, bytes);
  expect(() => readTar(bad, mkdtempSync(join(folder, "evil-")))).toThrow(message);
});

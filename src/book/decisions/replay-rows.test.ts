import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fastFolder } from "../../../test/support/fast-folder.ts";
import { rejectionOf } from "../../../test/support/refusal-of.ts";
import { rewriteColumn } from "../../../test/support/replay-tamper.ts";
import { ReplayWorld } from "../../../test/support/replay-world.ts";
import { manualClock } from "../../base/clock.ts";
import { openRecord, outsideBaseline, RolloutContent, type StepStream } from "../../contract/index.ts";
import { compactReplay, openReplay, writeReplay } from "../../keep/replay/index.ts";
import type { LoggedRow } from "../../learn/index.ts";
import { replayChains } from "./replay-rows.ts";
import { loadDecisions } from "./source.ts";

const folder = fastFolder("replay-rows");
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const quick = { clock: manualClock(1), durable: false } as const;

/** The world has chains with forks, missing rewards and probabilities, features, every ending, and token streams
 *  between them. */
const world = new ReplayWorld({ seed: 11 });
world.add(60);
const store = join(folder, "store");

beforeAll(async () => {
  const { manifest } = await writeReplay({
    ...{ root: store, read: world.read, rollouts: world.rollouts, limits: { candidates: 120 }, ...quick },
  });
  expect(manifest.segments.length).toBeGreaterThan(2);
});

async function rowsIn(root: string, options = {}): Promise<LoggedRow[]> {
  const opened = await openReplay(root);
  try {
    const rows: LoggedRow[] = [];
    for await (const chain of replayChains(opened, options)) for (const { row } of chain) rows.push(row);
    return rows;
  } finally {
    opened.close();
  }
}

const numbered = (letter: string, values: readonly number[] = []) =>
  Object.fromEntries(values.map((value, i) => [`${letter}${i}`, Math.fround(value)]));

/** Expected rows, computed from the sealed contents without the store. */
function expectedRows(): LoggedRow[] {
  return world.rollouts.flatMap((digest) => {
    const content = openRecord(RolloutContent, world.blobs.get(digest)!.bytes, digest);
    if (outsideBaseline(content.ending) !== undefined) return [];
    const { steps, family } = content.streams[0] as StepStream;
    const labelled = steps.every(({ reward }) => reward !== null);
    return steps.map((step, i) => ({
      id: `${content.rolloutId}/0/${i}`,
      chain: `${content.rolloutId}/0/0`,
      task: content.task.id,
      session: content.group!,
      family,
      atMs: 0,
      source: "synthetic" as const,
      context: { prompt: "", fields: numbered("f", step.context) },
      candidates: step.candidates.map(({ id, selectable, reasons, probability, features }) => ({
        ...{ id, selectable, probability, features: numbered("c", features) },
        reasons: [...reasons].sort(),
      })),
      chosen: step.chosen,
      propensity: step.candidates[step.chosen]!.probability,
      reward: labelled ? step.reward : null,
      terminal: content.ending.kind === "terminal" && i === steps.length - 1,
      terms: {},
      rewardFrom: "replay",
    }));
  });
}

const sorted = (rows: readonly LoggedRow[]) =>
  rows.map((row) => ({
    ...row,
    candidates: row.candidates.map((each) => ({ ...each, reasons: [...each.reasons].sort() })),
  }));

describe("rows of a replay store", () => {
  it("are the decisions of its rollouts, without those of chains that say nothing of the policy", async () => {
    const expected = expectedRows();
    // The world contains the cases that make the results differ.
    expect(expected.some(({ reward }) => reward === null)).toBe(true);
    expect(expected.some(({ propensity }) => propensity === null)).toBe(true);
    expect(new Set(expected.map(({ chain }) => chain)).size).toBeLessThan(world.rollouts.length);
    expect(sorted(await rowsIn(store))).toEqual(expected);
  });

  it("are the same however few are held at once", async () => {
    for (const mostNumbers of [1, 100])
      expect(await rowsIn(store, { mostNumbers })).toEqual(await rowsIn(store));
  });

  it("are the same after compaction", async () => {
    const plain = join(folder, "plain");
    await compactReplay({ from: store, to: plain, layout: { codec: "zstd" }, ...quick });
    expect(await rowsIn(plain)).toEqual(await rowsIn(store));
  });

  it("are refused where an array is not the one the manifest names, though its checksums fit", async () => {
    const root = join(folder, "changed");
    await writeReplay({ root, read: world.read, rollouts: world.rollouts, ...quick });
    const manifest = readFileSync(join(root, "manifest.json"));
    await rewriteColumn<Float64Array>(root, "steps/reward", { change: (rewards) => rewards.fill(1) });
    expect((await rowsIn(root)).every(({ reward }) => reward === 1)).toBe(true);
    writeFileSync(join(root, "manifest.json"), manifest);
    expect(await rejectionOf(rowsIn(root))).toMatchObject({
      code: "digest-mismatch",
      fields: { path: "steps/reward" },
    });
  });
});

describe("decisions loaded from a replay store", () => {
  it("pass the filters of family, session and source", async () => {
    const all = expectedRows();
    const every = { unlabelled: "keep", propensity: "any" } as const;
    const load = async (request: object) =>
      (await loadDecisions({ replay: store }, { ...every, ...request })).rows.length;
    const { session } = all[0]!;
    expect(await load({})).toBe(all.length);
    // Training leaves out a chain that lacks a reward or a probability, as from a book.
    const lacking = new Set(
      all
        .filter(({ reward, propensity }) => reward === null || propensity === null)
        .map(({ chain }) => chain),
    );
    expect(lacking.size).toBeGreaterThan(0);
    const usable = { unlabelled: "exclude", propensity: "choice" } as const;
    expect(await load(usable)).toBe(all.filter(({ chain }) => !lacking.has(chain)).length);
    expect(await load({ session })).toBe(all.filter((row) => row.session === session).length);
    await expect(load({ family: "writer" })).rejects.toThrow(
      /matches --family writer\. The families there: /,
    );
    await expect(load({ dataSource: "real" })).rejects.toThrow("matches --data-source real.");
  });

  it("are of one family", async () => {
    const two = new ReplayWorld({ seed: 2, tokensEvery: 0 });
    two.addOne();
    const stream = { level: "step", family: "other" } as const;
    const content = openRecord(RolloutContent, two.blobs.get(two.rollouts[0]!)!.bytes, "one");
    const { steps } = content.streams[0] as StepStream;
    two.addOne({ streams: [{ ...stream, family: stream.family as never, steps }] });
    const root = join(folder, "families");
    await writeReplay({ root, read: two.read, rollouts: two.rollouts, ...quick });
    expect(await rejectionOf(loadDecisions({ replay: root }, {}))).toMatchObject({
      code: "policy-family-mismatch",
      fields: { families: ["other", "views"] },
    });
    const { rows, manifest } = await loadDecisions({ replay: root }, { family: "other" });
    expect(rows).toHaveLength(steps.length);
    expect(manifest).toBe(JSON.parse(readFileSync(join(root, "manifest.json"), "utf8")).digest);
  });
});

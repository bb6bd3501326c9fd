import { appendFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fastFolder } from "../../../../test/support/fast-folder.ts";
import { reseal, rewriteColumn } from "../../../../test/support/replay-tamper.ts";
import { ReplayWorld } from "../../../../test/support/replay-world.ts";
import { manualClock } from "../../../base/clock.ts";
import { appendReplay, compactReplay, validateReplay, writeReplay } from "../index.ts";
import { readManifest } from "../tables/manifest.ts";
import type { Values } from "../zarr/codecs/data-types.ts";

const folder = fastFolder("replay-validate");
const quick = { clock: manualClock(1), durable: false } as const;
const [segmented, plain] = [join(folder, "segmented"), join(folder, "plain")];

beforeAll(async () => {
  const world = new ReplayWorld({ seed: 21, steps: 6 });
  world.add(20);
  await writeReplay({ root: segmented, read: world.read, rollouts: world.rollouts.slice(0, 14), ...quick });
  await appendReplay({ root: segmented, read: world.read, rollouts: world.rollouts.slice(14), ...quick });
  await compactReplay({ from: segmented, to: plain, ...quick });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let copies = 0;
function copyOf(root: string): string {
  const at = join(folder, `copy-${copies++}`);
  cpSync(root, at, { recursive: true });
  return at;
}

it.each([
  ["segmented", () => segmented],
  ["plain", () => plain],
])("a %s store as written has no error", async (_, root) => {
  const report = await validateReplay(root());
  expect(report).toMatchObject({ valid: true, count: 0, errors: [] });
});

type Change = (values: never) => void;
const set =
  (row: number, value: number | bigint) =>
  (values: { [row: number]: unknown }): void => {
    expect(values[row]).not.toEqual(value);
    values[row] = value;
  };
const flip = (row: number) => (values: Uint8Array) => {
  values[row] = 1 - values[row]!;
};
const add = (row: number, by: number) => (values: Float64Array) => {
  values[row] = values[row]! + by;
};
const firstWhere = (test: (value: number) => boolean, value: number) => (values: Float64Array) => {
  const at = values.findIndex(test);
  expect(at).toBeGreaterThanOrEqual(0);
  values[at] = value;
};

/** Simulates a writer with an error in one column. Digests match, so only the rule itself can detect the error. */
describe("with all digests right, a store is refused", () => {
  const cases: [claim: string, column: string, change: Change, code: string, array?: string][] = [
    ["whose foreign key leaves its table", "steps/source", set(1, 10_000) as Change, "reference"],
    ["whose text leaves the dictionary", "chains/family", set(0, -1) as Change, "reference"],
    ["with a candidate out of place", "candidates/index", set(0, 7) as Change, "chain"],
    ["whose ranges overlap", "steps/candidates_start", set(1, 0) as Change, "range"],
    [
      "whose ranges end early",
      "chains/tokens_count",
      firstWhere((n) => n > 0, 1) as Change,
      "range",
      "chains/tokens_start",
    ],
    [
      "with a text twice in the dictionary",
      "dictionary/text",
      ((texts: string[]) => {
        texts[1] = texts[0]!;
      }) as Change,
      "unique",
    ],
    [
      "with a reason bit renamed",
      "reasons/name",
      ((names: string[]) => {
        names[0] = "other";
      }) as Change,
      "reasons",
    ],
    [
      "with an unknown reason bit",
      "candidates/reasons",
      ((bits: BigUint64Array) => {
        const at = bits.findIndex((each) => each > 0n);
        bits[at] = 1n << 40n;
      }) as Change,
      "reasons",
    ],
    ["with reasons against a selectable candidate", "candidates/reasons", set(0, 1n) as Change, "reasons"],
    [
      "with one rollout twice",
      "chains/content",
      ((content: Uint8Array) => {
        content.copyWithin(32, 0, 32);
        content.copyWithin(64, 0, 32);
        content.copyWithin(96, 0, 32);
      }) as Change,
      "unique",
    ],
    [
      "whose artifacts hash to something else",
      "chains/content",
      flip(0) as Change,
      "hash",
      "hashes/artifacts",
    ],
    [
      "whose source keys are not those of the rows",
      "source_features/value",
      add(0, 1) as Change,
      "hash",
      "sources/key",
    ],
    ["whose split hash does not fit", "sources/split", set(0, -1) as Change, "hash", "hashes/splits"],
    ["whose lineage names another environment", "lineage/environment", set(0, 0) as Change, "lineage"],
    ["whose lineage is not one to one", "lineage/chain", set(1, 0) as Change, "lineage"],
    ["with a target declared valid against its reason", "targets/valid", flip(0) as Change, "value"],
    ["with a step of another chain", "steps/chain", set(0, 1) as Change, "chain"],
    ["with a step out of order", "steps/index", set(0, 3) as Change, "chain"],
    [
      "with a parent that comes later",
      "steps/parent",
      ((parent: Int32Array) => {
        const at = parent.indexOf(-1, 1);
        parent[at] = at;
      }) as Change,
      "chain",
    ],
    ["with a wrong depth", "steps/depth", set(0, 4) as Change, "chain"],
    [
      "whose error jumps between steps",
      "steps/before",
      ((before: Float64Array) => {
        before[1]! += 0.5;
      }) as Change,
      "continuity",
    ],
    ["whose gain is not that of its errors", "steps/gain", add(0, 0.25) as Change, "return"],
    [
      "whose cumulative gain is off by one bit",
      "steps/cumulative_gain",
      ((sums: Float64Array) => {
        new Uint8Array(sums.buffer)[8]! ^= 1;
      }) as Change,
      "return",
    ],
    [
      "whose cumulative reward is off",
      "steps/cumulative_reward",
      firstWhere((n) => n > 0, 0.125) as Change,
      "return",
    ],
    [
      "whose final gain is not its last",
      "chains/final_gain",
      firstWhere((n) => n !== 0, 9) as Change,
      "return",
    ],
    [
      "whose token rewards do not sum to the chain's",
      "tokens/reward",
      firstWhere((n) => n === 1, 2) as Change,
      "return",
      "chains/final_reward",
    ],
    [
      "with a sampled token that nobody sampled",
      "tokens/policy",
      ((policy: Int32Array) => {
        policy.fill(-1);
      }) as Change,
      "lineage",
    ],
    ["with a log-probability that is not finite", "tokens/logprob", set(0, Number.NaN) as Change, "value"],
    ["with an unknown ending", "chains/ending", set(0, 0) as Change, "ending"],
    ["with a chain both terminal and truncated", "chains/truncated", set(0, 1) as Change, "ending"],
    [
      "with a terminal step inside a chain",
      "steps/terminal",
      ((terminal: Uint8Array) => {
        terminal[terminal.indexOf(0)] = 1;
      }) as Change,
      "ending",
    ],
    [
      "with a truncated step inside a chain",
      "steps/truncated",
      ((truncated: Uint8Array) => {
        truncated[truncated.indexOf(0)] = 1;
      }) as Change,
      "ending",
    ],
    [
      "with two candidates chosen",
      "candidates/selected",
      ((selected: Uint8Array) => {
        selected[selected.indexOf(0)] = 1;
      }) as Change,
      "selection",
    ],
    [
      "with no candidate chosen",
      "candidates/selected",
      ((selected: Uint8Array) => {
        selected[selected.indexOf(1)] = 0;
      }) as Change,
      "selection",
    ],
    [
      "whose choice was not selectable",
      "candidates/selectable",
      ((selectable: Uint8Array) => {
        selectable.fill(0);
      }) as Change,
      "selection",
      "candidates/selected",
    ],
    ["whose selectable count is wrong", "steps/selectable_count", set(0, 77) as Change, "selection"],
    [
      "whose probabilities do not sum to 1",
      "candidates/probability",
      firstWhere((n) => n > 0 && n < 1, 0.001) as Change,
      "probability",
    ],
    [
      "with a probability above 1",
      "candidates/probability",
      firstWhere((n) => n > 0, 1.5) as Change,
      "probability",
    ],
    [
      "with part of a distribution logged",
      "candidates/probability",
      firstWhere((n) => n > 0 && n < 1, Number.NaN) as Change,
      "probability",
    ],
    [
      "whose step repeats another probability",
      "steps/probability",
      firstWhere((n) => n > 0, 0.01) as Change,
      "probability",
    ],
    [
      "trainable without a label",
      "candidates/trainable",
      ((mask: Uint8Array) => {
        mask.fill(1);
      }) as Change,
      "trainable",
    ],
    [
      "not trainable though the rule says so",
      "candidates/trainable",
      ((mask: Uint8Array) => {
        mask[mask.indexOf(1)] = 0;
      }) as Change,
      "trainable",
    ],
    [
      "with a label where none is known",
      "candidates/label",
      firstWhere(Number.isNaN, 0) as Change,
      "trainable",
      "candidates/labelled",
    ],
    [
      "with an infinite label",
      "candidates/label",
      firstWhere(Number.isFinite, Number.POSITIVE_INFINITY) as Change,
      "value",
    ],
    [
      "with two candidates of one id",
      "candidates/id",
      ((id: Int32Array) => {
        id.fill(id[0]!);
      }) as Change,
      "unique",
    ],
    ["whose view differs from the facts", "q_h/label", firstWhere(Number.isFinite, 0.5) as Change, "dense"],
    [
      "whose view has another NaN in its padding",
      "q_h/label",
      ((label: Float64Array) => {
        new Uint8Array(label.buffer)[label.findIndex(Number.isNaN) * 8]! ^= 1;
      }) as Change,
      "dense",
    ],
    ["whose view leads to another state", "q_h/next_state", firstWhere((n) => n > 0, 0) as Change, "dense"],
    ["whose terminal states go on", "q_h/discount", firstWhere((n) => n === 0, 1) as Change, "ending"],
    [
      "whose truncated states lost their bootstrap",
      "q_h/discount",
      ((discount: Float64Array) => {
        discount.fill(0);
      }) as Change,
      "ending",
    ],
  ];

  it.each(cases)("%s", async (_, column, change, code, array = column) => {
    const at = copyOf(plain);
    await rewriteColumn<Values>(at, column, { change: change as (values: Values) => void });
    const { errors } = await validateReplay(at);
    expect(errors.filter((error) => error.array === array && error.code === code)).not.toEqual([]);
    // No error about bytes: they match the manifest.
    expect(errors.map((error) => error.code)).not.toContain("digest");
    rmSync(at, { recursive: true });
  });
});

describe("damage to bytes is found and named:", () => {
  const reward = (at: string) => join(at, "segments", "s000002", "steps", "reward");
  const cases: [claim: string, change: (at: string) => void, expected: object][] = [
    [
      "a flipped bit",
      (at) => flipBit(join(reward(at), "c", "0")),
      { array: "segments/s000002/steps/reward", row: 0, code: "damaged" },
    ],
    [
      "a missing chunk",
      (at) => rmSync(join(reward(at), "c", "0")),
      { array: "segments/s000002/steps/reward", row: 0, code: "missing" },
    ],
    [
      "a truncated chunk",
      (at) => truncate(join(reward(at), "c", "0")),
      { array: "segments/s000002/steps/reward", code: "damaged" },
    ],
    [
      "edited metadata",
      (at) => edit(join(reward(at), "zarr.json"), "reward of the step", "reward of a step"),
      { array: "segments/s000002/steps/reward", code: "metadata" },
    ],
    [
      "another data type",
      (at) => edit(join(reward(at), "zarr.json"), "float64", "int64"),
      { array: "segments/s000002/steps/reward", code: "metadata" },
    ],
    [
      "edited group metadata",
      (at) => edit(join(at, "segments", "s000001", "q_h", "zarr.json"), "dense", "Dense"),
      { array: "segments/s000001/q_h/zarr.json", code: "metadata" },
    ],
    [
      "a chunk too many",
      (at) => writeFileSync(join(reward(at), "c", "1"), "x"),
      { array: "segments/s000002/steps/reward/c/1", code: "unexpected" },
    ],
    [
      "a foreign file",
      (at) => writeFileSync(join(at, "segments", "s000001", "notes.txt"), "x"),
      { array: "segments/s000001/notes.txt", code: "unexpected" },
    ],
    [
      "bytes after the manifest",
      (at) => appendFileSync(join(at, "manifest.json"), " "),
      { array: "manifest.json", code: "manifest" },
    ],
    ["a missing root", (at) => rmSync(join(at, "zarr.json")), { array: "zarr.json", code: "root" }],
    [
      "a missing segment",
      (at) => rmSync(join(at, "segments", "s000001"), { recursive: true }),
      { array: "segments/s000001/zarr.json", code: "missing" },
    ],
  ];

  it.each(cases)("%s", async (_, change, expected) => {
    const at = copyOf(segmented);
    change(at);
    expect((await validateReplay(at)).errors).toContainEqual(expect.objectContaining(expected));
    rmSync(at, { recursive: true });
  });

  it("two swapped arrays of the same shape", async () => {
    const at = copyOf(plain);
    const [a, b] = ["before", "after"].map((name) => join(at, "steps", name, "c", "0"));
    const held = readFileSync(a!);
    writeFileSync(a!, readFileSync(b!));
    writeFileSync(b!, held);
    const arrays = (await validateReplay(at)).errors.map(({ array }) => array);
    expect(new Set(arrays)).toEqual(new Set(["steps/before", "steps/after"]));
  });

  it("several at once: damage in one column hides no error in another", async () => {
    const at = copyOf(plain);
    await rewriteColumn<Float64Array>(at, "candidates/probability", { change: (values) => values.fill(0.9) });
    flipBit(join(at, "tokens", "id", "c", "0"));
    rmSync(join(at, "q_h", "reward", "c", "0"));
    const codes = new Set((await validateReplay(at)).errors.map(({ array, code }) => `${array} ${code}`));
    for (const each of ["candidates/probability probability", "tokens/id digest", "q_h/reward missing"])
      expect(codes).toContain(each);
  });
});

it("metadata that promise billions of chunks are refused in an instant", async () => {
  const at = copyOf(plain);
  edit(join(at, "steps", "reward", "zarr.json"), /"shape":\[\d+\]/, '"shape":[9007199254740991]');
  edit(join(at, "zarr.json"), "dense", "Dense");
  expect((await validateReplay(at)).errors).toContainEqual(
    expect.objectContaining({ array: "steps/reward", code: "shape" }),
  );
});

it("an orphan segment and temporary files are no errors: a writer may have died", async () => {
  const at = copyOf(segmented);
  mkdirSync(join(at, "segments", "s000009", "steps"), { recursive: true });
  writeFileSync(join(at, "segments", "s000009", "zarr.json"), "half");
  writeFileSync(join(at, "manifest.json.tmp"), "half");
  expect((await validateReplay(at)).errors).toEqual([]);
});

it("a manifest whose counts are not those of its segments is refused", async () => {
  const at = copyOf(plain);
  const manifest = readManifest(at);
  manifest.segments[0]!.hashes.splits = manifest.segments[0]!.hashes.policy!;
  reseal(at, manifest);
  const { errors } = await validateReplay(at);
  expect(errors).toContainEqual(expect.objectContaining({ array: "hashes/splits", code: "hash" }));
  expect(errors).toContainEqual(expect.objectContaining({ array: "zarr.json", code: "metadata" }));
});

it("a table that lacks rows for those of another is refused, and nothing is read past its end", async () => {
  const at = copyOf(plain);
  const manifest = readManifest(at);
  manifest.segments[0]!.rows.q_h = manifest.segments[0]!.rows.q_h! - 1;
  reseal(at, manifest);
  expect((await validateReplay(at)).errors).toContainEqual(
    expect.objectContaining({ array: "q_h", code: "shape", reason: expect.stringContaining("steps") }),
  );
});

it("all errors are counted, also those past the limit", async () => {
  const at = copyOf(plain);
  await rewriteColumn<Int32Array>(at, "steps/depth", { change: (values) => values.fill(99) });
  const report = await validateReplay(at, { limit: 3 });
  expect(report.errors).toHaveLength(3);
  expect(report.count).toBe(report.rows.steps);
});

function flipBit(path: string): void {
  const bytes = readFileSync(path);
  bytes[bytes.length >> 1]! ^= 4;
  writeFileSync(path, bytes);
}

function truncate(path: string): void {
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.subarray(0, bytes.length - 5));
}

function edit(path: string, from: string | RegExp, to: string): void {
  const text = readFileSync(path, "utf8");
  const edited = text.replace(from, to);
  expect(edited).not.toBe(text);
  writeFileSync(path, edited);
}

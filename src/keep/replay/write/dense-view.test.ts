import { rmSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { fastFolder } from "../../../../test/support/fast-folder.ts";
import { ReplayWorld } from "../../../../test/support/replay-world.ts";
import { manualClock } from "../../../base/clock.ts";
import { openRecord } from "../../../contract/codec/record.ts";
import { outsideBaseline } from "../../../contract/rollout/ending.ts";
import { RolloutContent } from "../../../contract/rollout/rollout.ts";
import type { Step } from "../../../contract/rollout/stream.ts";
import { compactReplay, openReplay, type Returns, readDense, validateReplay, writeReplay } from "../index.ts";

const folder = fastFolder("replay-dense");
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const quick = { clock: manualClock(1), durable: false } as const;

interface NaiveState {
  reward: number;
  return_to_go: number;
  discount: number;
  terminal: number;
  truncated: number;
  next_state: number;
  selected_index: number;
  label: number[];
  probability: number[];
  trainable: number[];
  selectable: number[];
}

/** Reference view, computed directly from the records, without tables and without optimisation. */
function naiveView(world: ReplayWorld, returns: Returns): NaiveState[] {
  const states: NaiveState[] = [];
  for (const digest of world.rollouts) {
    const content = openRecord(RolloutContent, world.blobs.get(digest)!.bytes);
    for (const stream of content.streams)
      if (stream.level === "step")
        states.push(...naiveChain(stream.steps, { content, returns, first: states.length }));
  }
  return states;
}

function naiveChain(
  steps: readonly Step[],
  { content, returns, first }: { content: RolloutContent; returns: Returns; first: number },
): NaiveState[] {
  const ended =
    content.ending.kind === "terminal" ||
    (content.ending.kind === "failed" && content.ending.owner === "agent");
  const valid = outsideBaseline(content.ending) === undefined;
  const nextOf = (i: number) => steps.findIndex((step, k) => k > i && (step.parent ?? k - 1) === i);
  const rewardOf = (step: Step) =>
    returns.semantics === "reward-to-go"
      ? (step.reward ?? Number.NaN)
      : (step.before! - step.after!) / Math.max(steps[0]!.before!, returns.epsilon);
  const returnOf = (i: number): number => {
    const next = nextOf(i);
    return next < 0 ? rewardOf(steps[i]!) : rewardOf(steps[i]!) + returns.gamma * returnOf(next);
  };
  return steps.map((step, i) => {
    const last = i === steps.length - 1;
    const next = nextOf(i);
    return {
      reward: rewardOf(step),
      return_to_go: returnOf(i),
      discount: last && ended ? 0 : returns.gamma,
      terminal: Number(last && ended),
      truncated: Number(next < 0 && !(last && ended)),
      next_state: next < 0 ? -1 : first + next,
      selected_index: step.chosen,
      label: step.candidates.map((each) => each.label ?? Number.NaN),
      probability: step.candidates.map((each) => each.probability ?? Number.NaN),
      selectable: step.candidates.map((each) => Number(each.selectable)),
      trainable: step.candidates.map((each) => Number(each.selectable && valid && each.label !== undefined)),
    };
  });
}

async function storedView(root: string): Promise<NaiveState[]> {
  const store = await openReplay(root);
  const { states, width, actor, supervision: s } = await readDense(store);
  store.close();
  return Array.from({ length: states }, (_, i) => {
    const cells = <V extends { slice(a: number, b: number): ArrayLike<number> }>(values: V) =>
      Array.from(values.slice(i * width, i * width + actor.candidate_count[i]!));
    return {
      reward: s.reward[i]!,
      return_to_go: s.return_to_go[i]!,
      discount: s.discount[i]!,
      terminal: s.terminal[i]!,
      truncated: s.truncated[i]!,
      next_state: s.next_state[i]!,
      selected_index: s.selected_index[i]!,
      label: cells(s.label),
      probability: cells(s.probability),
      selectable: cells(actor.selectable),
      trainable: cells(s.trainable),
    };
  });
}

it("the dense view is what the records say, for any rollouts, semantics, discount and number of segments", async () => {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        seed: fc.nat(10_000),
        rollouts: fc.integer({ min: 1, max: 12 }),
        width: fc.integer({ min: 1, max: 6 }),
        semantics: fc.constantFrom("root-gain" as const, "reward-to-go" as const),
        gamma: fc.constantFrom(0, 0.5, 1),
        candidates: fc.constantFrom(15, 1000),
      }),
      async ({ seed, rollouts, width, semantics, gamma, candidates }) => {
        const world = new ReplayWorld({ seed, width, steps: 7 });
        world.add(rollouts);
        const root = join(folder, String(run++));
        const returns = { semantics, gamma, epsilon: 1e-9 };
        await writeReplay({
          root,
          read: world.read,
          rollouts: world.rollouts,
          returns,
          limits: { candidates },
          ...quick,
        });
        expect(await storedView(root)).toEqual(naiveView(world, returns));
        expect((await validateReplay(root)).errors).toEqual([]);
        rmSync(root, { recursive: true });
      },
    ),
    { numRuns: 6, seed: 42 },
  );
});

it("gains telescope: their sum along a path is the gain from its first state to its last", async () => {
  const world = new ReplayWorld({ seed: 9, steps: 8 });
  world.add(20);
  const root = join(folder, "telescope");
  await writeReplay({ root, read: world.read, rollouts: world.rollouts, ...quick });
  const store = await openReplay(root);
  for await (const { columns } of store.blocks("steps", ["cumulative_gain", "before", "after", "parent"])) {
    for (let i = 0; i < columns.parent.length; i++) {
      let root = i;
      while (columns.parent[root]! >= 0) root = columns.parent[root]!;
      const whole = (columns.before[root]! - columns.after[i]!) / columns.before[root]!;
      expect(columns.cumulative_gain[i]!).toBeCloseTo(whole, 9);
    }
  }
  store.close();
});

it("segments of different width read as one view, padded to the widest; compaction changes no value", async () => {
  const world = new ReplayWorld({ seed: 5 });
  const root = join(folder, "widths");
  world.add(15);
  await writeReplay({
    root,
    read: world.read,
    rollouts: world.rollouts,
    limits: { candidates: 10 },
    ...quick,
  });
  const narrow = await openReplay(root);
  const widths = new Set(narrow.manifest.segments.map(({ maxCandidates }) => maxCandidates));
  expect(widths.size).toBeGreaterThan(1);
  const before = await readDense(narrow);
  await compactReplay({ from: root, to: join(folder, "widths-plain"), ...quick });
  const plain = await openReplay(join(folder, "widths-plain"));
  const after = await readDense(plain);
  // Sources are merged, so their rows differ; all other numbers are equal.
  expect({
    ...after,
    actor: { ...after.actor, source: 0 },
    supervision: { ...after.supervision, target: 0 },
  }).toEqual({
    ...before,
    actor: { ...before.actor, source: 0 },
    supervision: { ...before.supervision, target: 0 },
  });
  narrow.close();
  plain.close();
});

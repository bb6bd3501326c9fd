import { describe, expect, it } from "vitest";
import { refusalOf } from "../../test/support/refusal-of.ts";
import { digestJson, parseId } from "../base/index.ts";
import type { SealedTransition } from "../book/loop/index.ts";
import type { LoopPolicy, LoopTransition } from "../contract/index.ts";
import { foldRun, keptAfter, parentOf, servedAfter } from "./fold.ts";

const d = (name: unknown) => digestJson("test.loop", name as never);
const revision = (name: string) => ({ id: parseId(name), digest: d(name) });
const BEHAVIOUR = { kind: "behaviour" } as const;

type Step = LoopTransition["step"];

const STEPS: readonly Step[] = [
  {
    ...{ state: "planned", config: d("config"), world: d("world"), policy: BEHAVIOUR, releases: 0 },
    router: revision("router-1"),
  },
  { state: "collecting", experiment: parseId("run-w1"), seed: 0n, rollouts: 2, assigned: d("rows") },
  { state: "sealed", members: d("members"), rollouts: 2 },
  { state: "scored", batch: d("batch"), rows: 2, considered: 2, excluded: [], rewardMean: 0.5 },
  { state: "trained", revision: revision("run-w1"), rows: 2 },
  { state: "judged", outcome: "pass", reasons: [] },
  { state: "released", revision: revision("run-w1"), router: d("router") },
];

/** Chain of transitions of one window, up to a state, after `previous`. */
function chain(window: number, steps: readonly Step[], previous: SealedTransition["digest"][] = []) {
  const made: SealedTransition[] = [];
  for (const step of steps) {
    const digest = d([window, step.state]);
    made.push({
      digest,
      record: { schema: "rollbook.loop-transition.v1", run: parseId("run"), window, previous, step },
      envelope: { schema: "rollbook.loop-envelope.v1", transition: digest, atMs: 1 },
    });
    previous = [digest];
  }
  return made;
}

describe("the state of a run", () => {
  const first = chain(1, STEPS);

  it("is the same whatever order its transitions are read in, and ends where they end", () => {
    const second = chain(2, STEPS.slice(0, 4), [first.at(-1)!.digest]);
    const state = foldRun("run", [...second, ...first].reverse());
    expect(state.windows.map((each) => each.state)).toEqual(["released", "scored"]);
    expect(servedAfter(state, 2)).toEqual({ kind: "revision", revision: revision("run-w1") });
    expect(servedAfter(state, 0)).toEqual(BEHAVIOUR);
  });

  it("keeps what served where a gate refused", () => {
    const kept: Step = { state: "kept", policy: BEHAVIOUR, router: d("router") };
    const state = foldRun("run", chain(1, [...STEPS.slice(0, 6), kept]));
    expect([state.windows[0]!.state, servedAfter(state, 1)]).toEqual(["kept", BEHAVIOUR]);
  });

  it("goes on with what the book served, unless an earlier window has released since", () => {
    const served = revision("other");
    const planned = (policy: LoopPolicy, releases: number): Step => ({
      ...(STEPS[0] as Extract<Step, { state: "planned" }>),
      ...{ policy, releases, baseline: served },
    });
    const secondOf = (step: Step) => {
      const state = foldRun("run", [...first, ...chain(2, [step])]);
      const window = state.windows[1]!;
      return [parentOf(state, window), keptAfter(state, window)];
    };
    const book = { kind: "revision", revision: served } as const;
    expect(secondOf(planned(BEHAVIOUR, 1))).toEqual([BEHAVIOUR, book]);
    // The second window was planned before the first one ended.
    const own = { kind: "revision", revision: revision("run-w1") };
    expect(secondOf(planned(book, 0))).toEqual([own, own]);
  });

  it("is refused with a gap, and with two transitions to one state", () => {
    const gap = first.filter(({ record }) => record.step.state !== "trained");
    expect(refusalOf(() => foldRun("run", gap))).toMatchObject({ code: "loop-gap" });
    const twin = { ...first[3]!, digest: d("another") };
    expect(refusalOf(() => foldRun("run", [...first, twin]))).toMatchObject({ code: "loop-forked" });
  });
});

import { describe, expect, it } from "vitest";
import { manualClock } from "../../../base/clock.ts";
import { digestJson } from "../../../base/digest.ts";
import { FeedbackAdder, type NewFeedback } from "./feedback-adder.ts";
import { RolloutStates } from "./rollout-states.ts";

const digest = digestJson("test", "rollout");
const outcome = (key: string): NewFeedback =>
  ({ name: "solved", value: 1, source: "test", idempotencyKey: key }) as NewFeedback;

/** A sealed rollout, and a disk whose flushes end when the test says so. */
function sealedRollout() {
  const states = new RolloutStates();
  const flushes: { resolve(): void; reject(error: Error): void }[] = [];
  states.seals("r", {
    ...{ content: digest, envelope: digest, ending: { kind: "terminal" }, calls: [0], feedback: [] },
  });
  const adder = new FeedbackAdder({
    store: {
      put: () => digest,
      flush: () => new Promise<void>((resolve, reject) => flushes.push({ resolve, reject })),
    },
    journal: undefined as never,
    closed: { load: async () => undefined },
    sealing: { look: async () => [] as never },
    closing: { handOverMany: () => {} },
    ...{ states, signer: undefined, clock: manualClock(1) },
  });
  /** Keys of the outcomes that the rollout has, and whether it may be handed over to the catalog. */
  const known = () => {
    const state = states.get("r");
    if (state?.kind !== "sealed") return undefined;
    return [state.closed.feedback.map(({ idempotencyKey }) => idempotencyKey), state.isDurable];
  };
  return { adder, flushes, known };
}

const flushed = async (flushes: readonly unknown[], count: number) => {
  while (flushes.length < count) await new Promise((resolve) => setImmediate(resolve));
};

describe("two outcomes of one sealed rollout", () => {
  it("are both forgotten if their flush fails, so both can be sent again", async () => {
    const { adder, flushes, known } = sealedRollout();
    const added = [adder.add("r", outcome("a")), adder.add("r", outcome("b"))];
    const ends = Promise.allSettled(added);
    await flushed(flushes, 2);
    expect(known()).toEqual([["a", "b"], false]);
    for (const flush of flushes) flush.reject(new Error("the disk is full"));
    expect((await ends).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(known()).toEqual([[], true]);
    const again = adder.add("r", outcome("a"));
    await flushed(flushes, 3);
    flushes[2]!.resolve();
    expect(await again).toBe(true);
  });

  it("are durable when both are, and the loss of one leaves the other", async () => {
    const { adder, flushes, known } = sealedRollout();
    const [a, b] = [adder.add("r", outcome("a")), adder.add("r", outcome("b"))];
    await flushed(flushes, 2);
    flushes[0]!.reject(new Error("the disk is full"));
    await expect(a).rejects.toThrow("the disk is full");
    expect(known()).toEqual([["b"], false]);
    flushes[1]!.resolve();
    expect(await b).toBe(true);
    expect(known()).toEqual([["b"], true]);
  });
});

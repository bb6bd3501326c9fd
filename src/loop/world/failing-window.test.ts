import { describe, expect, it } from "vitest";
import type { Ending } from "../../contract/index.ts";
import { FailingWindow } from "./failing-window.ts";

const failed = (owner: "provider" | "agent"): Ending => ({
  kind: "failed",
  owner,
  message: "503: no answer",
});
const ENDED: Ending = { kind: "terminal" };

/** Attempts in order: the number of a rollout, and its ending. */
function isStopped(attempts: readonly (readonly [rollout: number, ending: Ending])[]): boolean {
  const window = new FailingWindow(240);
  for (const [rollout, ending] of attempts) window.tried(`r-${rollout}`, ending);
  return window.signal.aborted;
}

const firsts = (count: number, ending: Ending, from = 0) =>
  Array.from({ length: count }, (_, i) => [from + i, ending] as const);

describe("a window", () => {
  it("stops once 20 rollouts in a row failed by the provider, whatever came before", () => {
    expect(isStopped(firsts(20, failed("provider")))).toBe(true);
    expect(isStopped([...firsts(56, ENDED), ...firsts(20, failed("provider"), 56)])).toBe(true);
    const broken = [...firsts(19, failed("provider")), [19, ENDED] as const];
    expect(isStopped([...broken, ...firsts(19, failed("provider"), 20)])).toBe(false);
  });

  it("does not stop for failures of agents, or for later attempts of the same rollouts", () => {
    expect(isStopped(firsts(40, failed("agent")))).toBe(false);
    const mixed = firsts(60, ENDED).map(
      ([rollout], i) => [rollout, i % 2 === 0 ? failed("provider") : ENDED] as const,
    );
    const again = mixed.filter(([, { kind }]) => kind === "failed");
    expect(isStopped([...mixed, ...again, ...again])).toBe(false);
  });

  it("names the reason and the command that runs the rollouts again", () => {
    const window = new FailingWindow(6);
    for (const [rollout, ending] of firsts(6, failed("provider"))) window.tried(`r-${rollout}`, ending);
    expect(() => window.check("first-w2", "--config loop.yaml")).toThrow(
      /first-w2 stopped: 6 rollouts in a row failed, by the provider: 503: no answer\. .*`rollbook run resume --config loop\.yaml`/,
    );
  });
});

import { expect, test } from "vitest";
import { renderLoop, renderLoopProgress, transitionFacts } from "./loop-view.ts";

test("observed rewards are a mean over rollouts, and so are estimates of whole rollouts", () => {
  const window = { window: 1, rollouts: 40, collectedBy: "behaviour" };
  const scored = { ...window, state: "scored", rows: 40, rewardMean: 0.7845 };
  expect(transitionFacts(scored)).toBe("40 rows to train from, mean reward of these rows 0.7845");
  const estimate = { value: 0.4736, low: 0.4, high: 0.5 };
  const judged = { ...window, state: "judged", outcome: "pass", estimate } as const;
  expect(transitionFacts(judged)).toBe("pass, estimate 0.4736 [0.4000, 0.5000]");
  expect(transitionFacts({ ...judged, discount: 0.9 })).toBe(
    "pass, estimate 0.4736 [0.4000, 0.5000] a rollout, at discount 0.9",
  );
  expect(renderLoopProgress({ window: 1, done: 3, total: 40, meanReward: 0.5 }, 2)).toMatch(
    /observed reward 0\.500 a rollout$/,
  );
});

test("a policy that the gate does not let through is told as a result, with what goes on serving", () => {
  const window = {
    window: 1,
    state: "kept",
    rollouts: 40,
    collectedBy: "behaviour",
    outcome: "refuse",
  } as const;
  const text = renderLoop(
    {
      ...{ run: "loop", book: "book", planned: 1, ended: 1, running: false },
      windows: [{ ...window, reasons: ["the log is too small", "nothing acts"], serves: "behaviour" }],
    },
    "--config loop.yaml",
  );
  expect(text).toContain(
    "window 1: no new policy is released, and behaviour goes on. The log does not show that the new one is good enough: the log is too small; nothing acts\nloop: 1 of 1 window ended, done\n",
  );
});

test("repeated attempts do not count as rollouts of a window", () => {
  const window = { window: 1, state: "collecting", rollouts: 240, collectedBy: "behaviour" } as const;
  const status = { run: "loop", book: "book", planned: 1, ended: 0, running: false, windows: [window] };
  const collected = { window: 1, done: 240, total: 240 };
  expect(renderLoop({ ...status, collected }, "--config l.yaml")).toContain(
    "not running: `rollbook run resume --config l.yaml` continues it. Window 1 has collected 240 of 240 rollouts\n",
  );
  expect(renderLoop({ ...status, collected: { ...collected, attempts: 502 } }, "--config l.yaml")).toContain(
    "Window 1 has attempted 240 of 240 rollouts, some more than once (502 attempts)\n",
  );
});

test("rollouts that a batch leaves out are counted by reason", () => {
  const window = { window: 1, state: "kept", rollouts: 80, collectedBy: "behaviour" } as const;
  const excluded = [
    { reason: "failed-provider", rollouts: 22 },
    { reason: "cancelled", rollouts: 1 },
  ];
  const status = { run: "loop", book: "book", planned: 1, ended: 1, running: false };
  expect(renderLoop({ ...status, windows: [{ ...window, excluded }] }, "--config l.yaml")).toContain(
    "window 1: the batch leaves out 22 rollouts (failed-provider), 1 rollout (cancelled)\n",
  );
  const second = { ...window, window: 2, excluded };
  expect(renderLoop({ ...status, windows: [second] }, "--config l.yaml")).toContain(
    "1 rollout (cancelled); with data: all, those of earlier windows count again\n",
  );
  expect(renderLoop({ ...status, windows: [window] }, "--config l.yaml")).not.toContain("leaves out");
});

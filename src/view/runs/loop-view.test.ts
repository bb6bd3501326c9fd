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

test("a refused policy is reported as a result, with the policy that served then", () => {
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
    { options: "--config loop.yaml", data: "all" },
  );
  expect(text).toContain(
    "in window 1 the gate refused the new policy, and behaviour kept serving:\n  the log is too small.\n  nothing acts.\nloop: 1 of 1 window ended, done\n",
  );
});

test("the checkpoint lines name the policy that served after the last window, and claim nothing of now", () => {
  const made = (window: number) => ({
    ...{ window, rollouts: 40, collectedBy: "behaviour" },
    checkpoints: [{ revision: `loop-w${window}`, folder: `window-${window}` }],
  });
  const text = renderLoop(
    {
      ...{ run: "loop", book: "book", planned: 2, ended: 2, running: false },
      windows: [
        { ...made(1), state: "released", serves: "loop-w1" },
        { ...made(2), state: "kept", serves: "loop-w1" },
      ],
    },
    { options: "--config loop.yaml", data: "all" },
  );
  expect(text).toContain(
    "checkpoint of loop-w1 (served after window 2): window-1\ncheckpoint of loop-w2: window-2\n",
  );
});

test("a remedy that several refusals share is printed once, and figures of each stay", () => {
  const remedy = "Record with more exploration: then weights are smaller.";
  const reasons = ["the candidate", "the baseline"].map(
    (who, i) => `${who}: one task holds 2${i} % of all weight. The largest weight is 99. ${remedy}`,
  );
  const window = { window: 1, state: "kept", rollouts: 40, collectedBy: "behaviour", reasons } as const;
  const text = renderLoop(
    { run: "loop", book: "book", planned: 1, ended: 1, running: false, windows: [window] },
    { options: "--config loop.yaml", data: "all" },
  );
  expect(text).toContain(
    `  one task holds 20 % of all weight. The largest weight is 99. ${remedy}\n  the gate cannot judge the baseline, because one task holds 21 % of all weight. The largest weight is 99.\n`,
  );
});

test("the status of a stopped run counts results, and the rollouts still to run", () => {
  const window = { window: 1, state: "collecting", rollouts: 240, collectedBy: "behaviour" } as const;
  const status = { run: "loop", book: "book", planned: 1, ended: 0, running: false, windows: [window] };
  const collected = { window: 1, done: 22, total: 240 };
  expect(renderLoop({ ...status, collected }, { options: "--config l.yaml", data: "all" })).toContain(
    "not running: `rollbook run resume --config l.yaml` continues it. Window 1 has results of 22 of 240 rollouts, and 218 are still to run\n",
  );
});

test("rollouts that a batch leaves out are counted by reason", () => {
  const window = { window: 1, state: "kept", rollouts: 80, collectedBy: "behaviour" } as const;
  const excluded = [
    { reason: "failed-provider", rollouts: 22 },
    { reason: "cancelled", rollouts: 1 },
  ];
  const status = { run: "loop", book: "book", planned: 1, ended: 1, running: false };
  expect(
    renderLoop(
      { ...status, windows: [{ ...window, excluded }] },
      { options: "--config l.yaml", data: "all" },
    ),
  ).toContain("window 1: the batch leaves out 22 rollouts (failed-provider), 1 rollout (cancelled)\n");
  const second = { ...window, window: 2, excluded };
  expect(renderLoop({ ...status, windows: [second] }, { options: "--config l.yaml", data: "all" })).toContain(
    "window 2: the batch, of windows 1 to 2, leaves out 22 rollouts (failed-provider), 1 rollout (cancelled)\n",
  );
  expect(
    renderLoop({ ...status, windows: [window] }, { options: "--config l.yaml", data: "all" }),
  ).not.toContain("leaves out");
});

/** A summary of a demo with every case that the report draws: several learners, refusals, exclusions, a kept policy. */
import type { LineageNode } from "../../src/view/charts/index.ts";
import type { DemoLearner, DemoSummary, DemoWindow } from "../../src/view/runs/demo-summary.ts";

const digest = (seed: string) =>
  `sha256:${[...seed.padEnd(64, "5c3f")].map((each) => (each.charCodeAt(0) % 16).toString(16)).join("")}`;

const learner = (
  name: string,
  [window, estimate, half, exactValue]: readonly [number, number | undefined, number, number],
  fate: "released" | "passed" | "refused",
): DemoLearner => ({
  ...{ name, revision: `demo-w${window}-${name}`, exactValue },
  ...(estimate === undefined
    ? {}
    : { estimate, interval: { low: estimate - half, high: estimate + half, level: 0.95 } }),
  ...{ passed: fate !== "refused", released: fate === "released" },
});

const window = (
  index: number,
  facts: Pick<
    DemoWindow,
    "collectedBy" | "collectedValue" | "costUsd" | "outcome" | "serves" | "servedValue" | "learners"
  > & { readonly mean: number; readonly half: number },
): DemoWindow => {
  const { mean, half, ...rest } = facts;
  return {
    ...{ index, collected: 234, ...rest },
    reward: { mean, interval: { low: mean - half, high: mean + half, level: 0.95 } },
    refusals: rest.learners
      .filter(({ passed }) => !passed)
      .map(({ name }) => ({
        learner: name,
        reasons: [
          "quality: it may be up to 0.0546 worse (student-t, 95.00 % one-sided), and the margin is 0; the estimated difference is -0.0246",
        ],
      })),
  };
};

const WINDOWS: readonly DemoWindow[] = [
  window(1, {
    ...{ collectedBy: "behaviour", collectedValue: 0.6214, costUsd: 0.00412, mean: 0.6138, half: 0.0541 },
    ...{ outcome: "released", serves: "demo-w1-bc", servedValue: 0.7488 },
    learners: [
      learner("ucb", [1, 0.701, 0.09, 0.6927], "refused"),
      learner("bc", [1, 0.752, 0.081, 0.7488], "released"),
      learner("cql", [1, 0.741, 0.12, 0.7315], "passed"),
      learner("ppo", [1, undefined, 0, 0.6502], "refused"),
    ],
  }),
  window(2, {
    ...{ collectedBy: "demo-w1-bc", collectedValue: 0.7233, costUsd: 0.00377, mean: 0.7301, half: 0.0489 },
    ...{ outcome: "kept", serves: "demo-w1-bc", servedValue: 0.7488 },
    learners: [
      learner("ucb", [2, 0.706, 0.05, 0.6927], "refused"),
      learner("bc", [2, 0.741, 0.06, 0.7501], "refused"),
      learner("cql", [2, 0.735, 0.06, 0.7422], "refused"),
      learner("ppo", [2, 0.722, 0.07, 0.7106], "refused"),
    ],
  }),
  window(3, {
    ...{ collectedBy: "demo-w1-bc", collectedValue: 0.7233, costUsd: 0.00369, mean: 0.7265, half: 0.0473 },
    ...{ outcome: "released", serves: "demo-w3-cql", servedValue: 0.8305 },
    learners: [
      learner("ucb", [3, 0.699, 0.04, 0.6927], "refused"),
      learner("bc", [3, 0.781, 0.04, 0.7723], "passed"),
      learner("cql", [3, 0.826, 0.04, 0.8305], "released"),
      learner("ppo", [3, 0.802, 0.05, 0.7901], "passed"),
    ],
  }),
];

const NODES: readonly LineageNode[] = WINDOWS.flatMap(({ index, learners, outcome, serves, collected }) => {
  const node = (kind: LineageNode["kind"], name: string, label: string): LineageNode => {
    const id = `${index}-${kind}-${name}`;
    return { ...{ id, kind, window: index, label }, digest: digest(id) };
  };
  return [
    node("rollouts", "all", `${collected} rollouts`),
    node("batch", "train", "141 rows"),
    ...learners.map(({ name, revision }) => node("revision", name, revision)),
    ...learners.map(({ name, passed }) => node("verdict", name, passed ? "pass" : "refuse")),
    node("release", "serves", outcome === "kept" ? `kept ${serves}` : serves),
  ];
});

export const DEMO_SUMMARY: DemoSummary = {
  ...{ run: "demo", seed: 1, rollouts: 702, tasks: 72 },
  models: ["sim-small", "sim-coder", "sim-thinker", "sim-large"],
  windows: WINDOWS,
  ...{ optimum: 0.8712, behaviourValue: 0.6214, servedValue: 0.8305, gapClosed: 0.8371 },
  learners: WINDOWS[2]!.learners,
  ledger: {
    considered: 702,
    admitted: [
      { use: "train", rollouts: 412 },
      { use: "calibration", rollouts: 0 },
      { use: "judge", rollouts: 268 },
    ],
    excluded: [
      { reason: "failed-sandbox", rollouts: 15 },
      { reason: "unlabelled", rollouts: 7 },
    ],
  },
  lineage: {
    nodes: NODES,
    edges: [
      ...WINDOWS.flatMap(({ index, learners }) => [
        ...Array.from({ length: index }, (_, i) => ({
          ...{ from: `${i + 1}-rollouts-all`, to: `${index}-batch-train`, label: "holds rows of" },
        })),
        ...learners.map(({ name }) => ({
          ...{ from: `${index}-batch-train`, to: `${index}-revision-${name}`, label: "was trained on" },
        })),
        ...learners.map(({ name }) => ({
          ...{ from: `${index}-revision-${name}`, to: `${index}-verdict-${name}`, label: "judges" },
        })),
        ...learners
          .filter(({ released }) => released)
          .map(({ name }) => ({
            ...{ from: `${index}-verdict-${name}`, to: `${index}-release-serves`, label: "was released by" },
          })),
        ...(index < WINDOWS.length
          ? [{ from: `${index}-release-serves`, to: `${index + 1}-rollouts-all`, label: "were collected by" }]
          : []),
      ]),
    ],
  },
  costQuality: [
    { name: "sim-small", kind: "model", costUsd: 0.0006, quality: 0.412, reward: 0.4 },
    { name: "sim-coder", kind: "model", costUsd: 0.0021, quality: 0.661, reward: 0.62 },
    { name: "sim-thinker", kind: "model", costUsd: 0.0058, quality: 0.702, reward: 0.63 },
    { name: "sim-large", kind: "model", costUsd: 0.0083, quality: 0.811, reward: 0.68 },
    { name: "behaviour", kind: "behaviour", costUsd: 0.0042, quality: 0.6465, reward: 0.6214 },
    { name: "demo-w3-cql", kind: "served", costUsd: 0.0034, quality: 0.874, reward: 0.8305 },
    { name: "demo-w3-bc", kind: "candidate", costUsd: 0.0036, quality: 0.82, reward: 0.7723 },
    { name: "demo-w3-ppo", kind: "candidate", costUsd: 0.0039, quality: 0.843, reward: 0.7901 },
    { name: "optimum", kind: "optimum", costUsd: 0.0031, quality: 0.912, reward: 0.8712 },
  ],
  stages: [
    { window: 0, stage: "generate and prove tasks", ms: 6200 },
    ...WINDOWS.flatMap(({ index }) => [
      { window: index, stage: "collect", ms: 14_000 + 300 * index },
      { window: index, stage: "train and judge", ms: 7900 },
    ]),
    { window: 0, stage: "seal and verify the pack", ms: 4100 },
  ],
  gate: { alpha: 0.05, epsilonQuality: 0, epsilonCost: null },
  rewardAnalysis: [{ model: "sim-coder", value: 0.62 }],
  replay: { path: "replay.zarr", chains: 702, valid: true },
  pack: { path: "pack", digest: digest("pack"), verified: true },
  digest: digest("run"),
};

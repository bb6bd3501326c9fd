import { expect, test } from "vitest";
import type { Digest } from "../base/index.ts";
import { parseLoopConfig } from "./config.ts";
import { trainerOptions } from "./token-config.ts";

const AGENT = {
  world: { kind: "agent", agent: "agent.mjs", tasks: "tasks.jsonl", gateway: "gateway.yaml" },
  ...{ windows: 2, rollouts: 8, learner: { kind: "ucb" } },
};
const CLUSTER = {
  ...{ book: "s3://runs/book", queue: "nats://nats-0/sums", gateways: ["http://gateway-0:8790"] },
  ...{ gatewayTokenEnv: "ROLLBOOK_TOKEN", workers: 0 },
};
const parse = (config: object) => parseLoopConfig(JSON.stringify(config), "loop.yaml", "/runs");

test("a run keeps its digest when it moves to a cluster, and not when its settings change", () => {
  const { digest, isDigest } = parse({ ...AGENT, workers: 3 });
  expect(parse({ ...AGENT, ...CLUSTER }).digest).toBe(digest);
  expect(parse(AGENT).digest).toBe(digest);
  expect(isDigest(parse({ ...AGENT, seed: 1 }).digest)).toBe(false);
});

test("the digests of earlier versions, which bound the workers, are still those of the configuration", () => {
  // Digests written by the previous version, for AGENT with this number of workers.
  const earlier: Readonly<Record<number, string>> = {
    2: "sha256:2d916e5dbb5f9fd61d4411530f199f0ccb4d1d62f3a51604fea53c7584e9d212",
    4: "sha256:b174758f29642d74af58499689a483f2597e836dc96e5dcfa4e61dd2d1abcdc8",
    1024: "sha256:b79462c33c18877832c52cd826e34cb38c1e3d5de8299a81d3f64ee99a3ee085",
  };
  for (const [workers, digest] of Object.entries(earlier)) {
    expect(parse({ ...AGENT, workers: Number(workers) }).isDigest(digest as Digest)).toBe(true);
    expect(parse({ ...AGENT, ...CLUSTER }).isDigest(digest as Digest)).toBe(true);
  }
  expect(parse(AGENT).digest).toBe(earlier[4]);
});

test("a misspelt kind is told with the nearest one", () => {
  expect(() => parse({ ...AGENT, learner: { kind: "linucp" } })).toThrow(
    /learner\.kind must be .*\. Did you mean linucb\?/,
  );
});

const TOKENS = {
  world: { kind: "tokens", tasks: "tasks.jsonl", model: "model" },
  ...{ windows: 2, rollouts: 8, learner: { kind: "grpo" } },
};

test("a token run keeps its digest when it resumes with less memory or on another machine", () => {
  const { digest, isDigest } = parse(TOKENS);
  const { world } = TOKENS;
  const smaller = parse({
    ...TOKENS,
    world: { ...world, maxBatch: 64, python: "venv/bin/python", device: "cuda:1", threads: 4 },
    learner: { kind: "grpo", rows: 128 },
  });
  expect(smaller.digest).toBe(digest);
  expect(smaller.tokenLearner?.rows).toBe(128);
  expect(isDigest(parse({ ...TOKENS, learner: { kind: "grpo", rate: 0.5 } }).digest)).toBe(false);
});

test("a token run that an earlier version began, with rows of its own, is still the same run", () => {
  // Written by the previous version, whose digest covered rows.
  const earlier = "sha256:d3de0612043f9189ee969f4bd720cd7171cf5b9e6769c0e9c04df3c22636d0e5" as Digest;
  expect(parse({ ...TOKENS, learner: { kind: "grpo", rows: 128 } }).isDigest(earlier)).toBe(true);
});

test("the learning rate of a token run falls between two windows", () => {
  const { tokenLearner } = parse({
    ...TOKENS,
    learner: { kind: "grpo", rate: 0.01, decay: { from: 10, until: 20, to: 0.5 } },
  });
  const rate = (window: number) =>
    trainerOptions(tokenLearner!, { temperature: 1, seed: 0, window }).rate as number;
  expect([1, 10, 15, 20, 30].map(rate)).toEqual([0.01, 0.01, 0.0075, 0.005, 0.005]);
  expect(() => parse({ ...TOKENS, learner: { kind: "grpo", decay: { from: 5, until: 5 } } })).toThrow(
    /learner\.decay.*not after/,
  );
});

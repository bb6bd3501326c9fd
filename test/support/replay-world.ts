/** A small world of sealed rollouts for replay stores, from a seed: chains of decisions with forks, invalid
 *  candidates, features and errors before and after, and token streams. For tests, campaigns and benchmarks. */
import { type Digest, digestJson } from "../../src/base/digest.ts";
import { parseId } from "../../src/base/ids.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import {
  type EnvironmentKey,
  type RolloutDraft,
  type SealedBlob,
  type Step,
  seal,
  sealRollout,
  Task,
} from "../../src/contract/index.ts";

export const ENVIRONMENT = "env.views@1" as EnvironmentKey;
const REASONS = ["over-budget", "unsafe", "unreachable"].map((name) => parseId(name));
const ENDINGS: readonly RolloutDraft["ending"][] = [
  { kind: "terminal" },
  { kind: "truncated", limit: "turns" },
  { kind: "failed", owner: "agent", message: "gave up" },
  { kind: "failed", owner: "provider", message: "503" },
  { kind: "cancelled" },
];

export interface WorldOptions {
  readonly seed?: bigint | number;
  /** Largest number of candidates of a step. */
  readonly width?: number;
  readonly steps?: number;
  readonly contextWidth?: number;
  readonly featureWidth?: number;
  /** Every n-th rollout also holds a token stream; 0 means none. */
  readonly tokensEvery?: number;
}

export class ReplayWorld {
  readonly blobs = new Map<Digest, { kind: string; bytes: Uint8Array }>();
  readonly rollouts: Digest[] = [];
  readonly read = async (digest: Digest) => this.blobs.get(digest);
  readonly #rng: Rng;
  readonly #options: Required<Omit<WorldOptions, "seed">>;

  constructor({ seed = 1, ...options }: WorldOptions = {}) {
    this.#rng = rngFrom(seed);
    this.#options = { width: 5, steps: 4, contextWidth: 3, featureWidth: 2, tokensEvery: 3, ...options };
  }

  /** Adds `count` rollouts and returns the digests of their contents. */
  add(count: number, over: Partial<RolloutDraft> = {}): Digest[] {
    return Array.from({ length: count }, () => this.addOne(over));
  }

  addOne(over: Partial<RolloutDraft> = {}): Digest {
    const index = this.rollouts.length;
    const sealed = sealRollout({ ...this.#draft(index, this.#rng.split(index)), ...over });
    for (const blob of sealed.blobs) this.#put(blob);
    this.rollouts.push(sealed.content.digest);
    return sealed.content.digest;
  }

  task(number: number, split = number % 5 === 0 ? "test" : "train"): { id: Task["id"]; digest: Digest } {
    const id = parseId(`task-${number}`);
    const task = seal(Task, { id, environment: ENVIRONMENT, payload: {}, split, dataSource: "synthetic" });
    this.#put(task);
    return { id, digest: task.digest };
  }

  #put(blob: SealedBlob): void {
    this.blobs.set(blob.digest, { kind: blob.kind, bytes: blob.bytes });
  }

  #draft(index: number, rng: Rng): RolloutDraft {
    const { tokensEvery } = this.#options;
    const tokens = tokensEvery > 0 && index % tokensEvery === 0 ? [tokenStream(rng.split("tokens"))] : [];
    return {
      rolloutId: parseId(`rollout-${index}`),
      environment: ENVIRONMENT,
      task: this.task(Math.floor(index / 2)),
      group: parseId(`group-${Math.floor(index / 2)}`),
      seed: rng.u64(),
      dataSource: "synthetic",
      sampling: { temperature: 1 },
      configs: { "candidate-mixture": digestJson("mixture", 1), oracle: digestJson("oracle", 1) },
      calls: [],
      scores: [{ name: parseId("gain"), value: 1, weight: 1 }],
      ending: ENDINGS[index % 7 < 3 ? 0 : index % ENDINGS.length]!,
      streams: [
        { level: "step", family: parseId("views"), steps: this.#steps(rng.split("steps")) },
        ...tokens,
      ],
      envelope: { worker: parseId("w"), startedAtMs: 1, endedAtMs: 2 },
    };
  }

  #steps(rng: Rng): Step[] {
    const steps: Step[] = [];
    const count = 1 + rng.below(this.#options.steps);
    const context = vector(rng, this.#options.contextWidth);
    for (let i = 0; i < count; i++) {
      const fork = i >= 2 && rng.below(4) === 0 ? rng.below(i - 1) : undefined;
      const before = i === 0 ? 1 + rng.float() : steps[fork ?? i - 1]!.after!;
      // Some contexts repeat along the chain, so that sources are shared.
      const seen = rng.below(2) === 0 ? context : vector(rng, this.#options.contextWidth);
      steps.push({
        revision: { id: parseId("r1"), digest: digestJson("weights", 1) },
        turn: i,
        ...(fork === undefined ? {} : { parent: fork }),
        context: seen,
        ...this.#decision(rng),
        before,
        after: before * (0.5 + rng.float() * 0.6),
        reward: rng.below(8) === 0 ? null : rng.float(),
      });
    }
    return steps;
  }

  #decision(rng: Rng): Pick<Step, "candidates" | "chosen"> {
    const count = 1 + rng.below(this.#options.width);
    const selectable = Array.from({ length: count }, (_, i) => i === 0 || rng.below(4) > 0);
    const weights = selectable.map((yes) => (yes ? 1 + rng.below(9) : 0));
    const total = weights.reduce((a, b) => a + b, 0);
    const logged = rng.below(6) > 0;
    const candidates = selectable.map((yes, i) => ({
      id: `c${i}`,
      selectable: yes,
      reasons: yes ? [] : REASONS.filter((_, bit) => bit === i % 3 || rng.below(5) === 0),
      probability: logged ? weights[i]! / total : null,
      ...(rng.below(3) === 0 ? {} : { label: rng.float() - 0.5 }),
      ...(rng.below(2) === 0 ? {} : { diagnostic: rng.float() }),
      provenance: i % 2 === 0 ? "grid" : "random",
      features: vector(rng, this.#options.featureWidth),
    }));
    const open = selectable.flatMap((yes, i) => (yes ? [i] : []));
    return { candidates, chosen: open[rng.below(open.length)]! };
  }
}

function tokenStream(rng: Rng): RolloutDraft["streams"][number] {
  const length = 3 + rng.below(20);
  const list = (make: (i: number) => number) => Array.from({ length }, (_, i) => make(i));
  const revision = (id: string) => ({ id: parseId(id), digest: digestJson("lm", id) });
  return {
    level: "token",
    family: parseId("writer"),
    logprobKind: "sampling",
    segments: [
      { start: 1, end: 2, revision: revision("lm-1") },
      { start: 2, end: length, revision: revision("lm-2") },
    ],
    ids: list(() => rng.below(50_000)),
    logprobs: list(() => -rng.float()),
    mask: list((i) => Number(i > 0)),
    turns: list((i) => i >> 2),
    ...(rng.below(2) === 0 ? {} : { rewards: list((i) => (i === length - 1 ? 1 : 0)) }),
  };
}

function vector(rng: Rng, width: number): number[] {
  return Array.from({ length: width }, () => rng.float());
}

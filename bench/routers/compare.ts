/** One split of a set:
 *  our learners and scikit-learn's train on the same rows and are judged on the same held-out rows. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Digest, digestJson } from "../../src/base/index.ts";
import type { Rng } from "../../src/base/rng.ts";
import { type LoggedRow, trainValue, type ValueKind } from "../../src/learn/index.ts";
import { answerOf } from "../../src/policy/index.ts";
import type { PythonPeer } from "../support/python-peer.ts";
import type { RouterSet } from "./router-set.ts";

export type RouterMode = "logged" | "full";

export interface SplitResult {
  /** Mean reward minus that of the best single candidate of training, by learner. */
  readonly gains: Readonly<Record<string, number>>;
  readonly seconds: Readonly<Record<string, number>>;
  readonly parts: string;
}

const TRAIN_SHARE = 0.7;
const PEERS = ["ridge", "logistic", "knn"] as const;

export async function loadPeer(peer: PythonPeer, { texts, fields }: RouterSet): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-routers-"));
  try {
    const path = join(folder, "set.json");
    writeFileSync(path, JSON.stringify({ texts, fields }));
    return (await peer.call<{ version: string }>("load", path)).version;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export async function compareOnce(
  set: RouterSet,
  options: { mode: RouterMode; peer: PythonPeer; rng: Rng; ours: readonly ValueKind[] },
): Promise<SplitResult> {
  const { mode, peer, rng, ours } = options;
  const order = rng.split("order").shuffle([...set.fields.keys()]);
  const cut = Math.floor(TRAIN_SHARE * order.length);
  const [train, test] = [order.slice(0, cut), order.slice(cut)];
  const draw = rng.split("choices");
  const seen = train.map((i) => observed(set, { i, mode, draw }));
  const judge = judgeOf(set, { seen, test });
  const gains: Record<string, number> = {};
  const seconds: Record<string, number> = {};
  let parts = "";
  for (const kind of ours) {
    const start = performance.now();
    const rows = train.map((i, r) => rowOf(set, i, seen[r]!));
    const digest = digestJson("bench", set.name) as Digest;
    const { model, report } = trainValue({ rows, digest }, { kind, seed: 1n });
    const answer = answerOf(model);
    const candidates = set.arms.map((id) => ({ id, selectable: true, reasons: [], features: {} }));
    const choices = test.map((i) => {
      const { probabilities } = answer({ prompt: set.texts?.[i] ?? "", fields: set.fields[i]! }, candidates);
      return probabilities.indexOf(Math.max(...probabilities));
    });
    gains[kind] = judge(choices);
    seconds[kind] = (performance.now() - start) / 1000;
    if (kind === "auto")
      parts = report.parts.map(({ learner, share }) => `${share.toFixed(2)} ${learner}`).join(" + ");
  }
  const arms = set.arms.map((_, a) => {
    const own = seen.flatMap((each, r) => (each.rewards[a] === undefined ? [] : [[r, each.rewards[a]!]]));
    return [own.map(([r]) => r), own.map(([, reward]) => reward)];
  });
  const reply = await peer.call<{
    learners: Record<string, { choices: number[]; seconds: number }>;
  }>("split", train, test, arms, PEERS);
  for (const [kind, each] of Object.entries(reply.learners)) {
    gains[`sklearn ${kind}`] = judge(each.choices);
    seconds[`sklearn ${kind}`] = each.seconds;
  }
  return { gains, seconds, parts };
}

interface Observed {
  readonly chosen: number;
  readonly propensity: number | null;
  /** Rewards by candidate; undefined: not observed. */
  readonly rewards: readonly (number | undefined)[];
}

function observed(set: RouterSet, { i, mode, draw }: { i: number; mode: RouterMode; draw: Rng }): Observed {
  if (set.kind === "logged") {
    const { chosen, reward, propensity } = set.logged[i]!;
    return { chosen, propensity, rewards: set.arms.map((_, a) => (a === chosen ? reward : undefined)) };
  }
  const rewards = set.rewards[i]!;
  if (mode === "full") return { chosen: 0, propensity: null, rewards };
  const chosen = draw.below(set.arms.length);
  return {
    chosen,
    propensity: 1 / set.arms.length,
    rewards: rewards.map((reward, a) => (a === chosen ? reward : undefined)),
  };
}

export function rowOf(set: RouterSet, i: number, { chosen, propensity, rewards }: Observed): LoggedRow {
  const id = `q${String(i).padStart(7, "0")}`;
  const full = rewards.every((each) => each !== undefined);
  return {
    ...{ id, task: id, session: id, chain: id, family: "router", atMs: 0, source: "real", terminal: true },
    context: { prompt: set.texts?.[i] ?? "", fields: set.fields[i]! },
    candidates: set.arms.map((arm, a) => ({
      ...{ id: arm, selectable: true, reasons: [], features: {}, probability: null },
      ...(full ? { outcome: { reward: rewards[a]!, terms: {} } } : {}),
    })),
    chosen,
    propensity,
    reward: rewards[chosen]!,
    terms: {},
    rewardFrom: "recorded",
  };
}

/** The mean reward of choices on the test rows, minus that of the single candidate that was best in training. */
function judgeOf(
  set: RouterSet,
  { seen, test }: { seen: readonly Observed[]; test: readonly number[] },
): (choices: readonly number[]) => number {
  const value = (choices: readonly number[]) => {
    if (set.kind === "full")
      return choices.reduce((sum, choice, k) => sum + set.rewards[test[k]!]![choice]!, 0) / test.length;
    const terms = test.map((i, k) => {
      const { chosen, reward, propensity } = set.logged[i]!;
      return chosen === choices[k] ? [reward / propensity, 1 / propensity] : [0, 0];
    });
    return terms.reduce((sum, [top]) => sum + top!, 0) / terms.reduce((sum, [, bottom]) => sum + bottom!, 0);
  };
  const means = set.arms.map((_, a) => {
    const own = seen.flatMap(({ rewards }) => rewards[a] ?? []);
    return own.length === 0 ? Number.NEGATIVE_INFINITY : own.reduce((x, y) => x + y, 0) / own.length;
  });
  const single = means.indexOf(Math.max(...means));
  const base = value(test.map(() => single));
  return (choices) => value(choices) - base;
}

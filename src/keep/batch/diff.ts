/** Says in words what differs between two batches, and why: cause first (manifest, seed, options), effect after. */
import type { Digest } from "../../base/index.ts";
import {
  LossLedger,
  Manifest,
  PolicyRevisionLineage,
  type ReadBlob,
  TrainerBatch,
} from "../../contract/index.ts";
import { readRecord } from "../admit/index.ts";

export interface BatchDifference {
  what: string;
  /** `cause`: an input of assembly differs. `effect`: follows from a cause. */
  role: "cause" | "effect";
  sentence: string;
  left?: unknown;
  right?: unknown;
}

export async function diffBatches(read: ReadBlob, left: Digest, right: Digest): Promise<BatchDifference[]> {
  if (left === right) return [];
  const [a, b] = await Promise.all([
    readRecord(read, TrainerBatch, left),
    readRecord(read, TrainerBatch, right),
  ]);
  return [
    ...(a.manifest === b.manifest ? [] : await diffManifests(read, a.manifest, b.manifest)),
    ...diffInputs(a, b),
    ...(a.lineage === b.lineage ? [] : await diffLineages(read, a.lineage, b.lineage)),
    ...(a.ledger === b.ledger ? [] : await diffLedgers(read, a.ledger, b.ledger)),
    ...diffTotals(a, b),
  ];
}

async function diffManifests(read: ReadBlob, left: Digest, right: Digest): Promise<BatchDifference[]> {
  const [a, b] = await Promise.all([readRecord(read, Manifest, left), readRecord(read, Manifest, right)]);
  const differences: BatchDifference[] = [];
  const report = (what: string, only: readonly [Digest[], Digest[]]) => {
    if (only[0].length + only[1].length === 0) return;
    const sentence = `${what}: ${only[0].length} only in the first, ${only[1].length} only in the second${named(only)}.`;
    differences.push({ what: `manifest.${what}`, role: "cause", sentence, left: only[0], right: only[1] });
  };
  report(
    "artifacts",
    exclusive(
      a.artifacts.map((each) => each.content),
      b.artifacts.map((each) => each.content),
    ),
  );
  report(
    "envelopes",
    exclusive(
      a.artifacts.map((each) => each.envelope),
      b.artifacts.map((each) => each.envelope),
    ),
  );
  for (const name of ["revisions", "verdicts", "releases", "feedback"] as const)
    report(name, exclusive(a[name], b[name]));
  return differences;
}

function diffInputs(a: TrainerBatch, b: TrainerBatch): BatchDifference[] {
  const inputs: [string, unknown, unknown, string][] = [
    [
      "target",
      `${a.target.id} ${a.target.digest}`,
      `${b.target.id} ${b.target.digest}`,
      "they are meant to improve different revisions",
    ],
    ["selection.family", a.selection.family, b.selection.family, "they select different policies"],
    ["selection.level", a.selection.level, b.selection.level, "they select different levels"],
    [
      "selection.logprobKind",
      a.selection.logprobKind,
      b.selection.logprobKind,
      "their logprobs mean different things",
    ],
    ["seed", a.seed.toString(), b.seed.toString(), "the rows stand in another order"],
    ...(["advantage", "feedback", "maxLength", "requireVerdict", "shardTokens"] as const).map(
      (name): [string, unknown, unknown, string] => [
        `options.${name}`,
        a.options[name],
        b.options[name],
        "they were cut by different rules",
      ],
    ),
  ];
  return inputs
    .filter(([, left, right]) => left !== right)
    .map(([what, left, right, why]) => ({
      what,
      role: "cause",
      sentence: `${what}: ${show(left)} against ${show(right)}, so ${why}.`,
      left,
      right,
    }));
}

async function diffLineages(read: ReadBlob, left: Digest, right: Digest): Promise<BatchDifference[]> {
  const [a, b] = await Promise.all([
    readRecord(read, PolicyRevisionLineage, left),
    readRecord(read, PolicyRevisionLineage, right),
  ]);
  const only = exclusive(
    a.sources.map((each) => each.id),
    b.sources.map((each) => each.id),
  );
  if (only[0].length + only[1].length === 0)
    return [
      {
        what: "lineage",
        role: "effect",
        sentence: "lineage: the same sources, described by different records or targets.",
      },
    ];
  return [
    {
      what: "lineage",
      role: "effect",
      sentence: `lineage: ${only[0].length} source revisions only in the first, ${only[1].length} only in the second${named(only)}.`,
      left: only[0],
      right: only[1],
    },
  ];
}

async function diffLedgers(read: ReadBlob, left: Digest, right: Digest): Promise<BatchDifference[]> {
  const [a, b] = await Promise.all([readRecord(read, LossLedger, left), readRecord(read, LossLedger, right)]);
  const streams = (ledger: LossLedger) => new Map(ledger.reasons.map((each) => [each.reason, each.streams]));
  const [before, after] = [streams(a), streams(b)];
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((reason) => before.get(reason) !== after.get(reason))
    .map((reason) => {
      const [x, y] = [before.get(reason) ?? 0, after.get(reason) ?? 0];
      return {
        what: `ledger.${reason}`,
        role: "effect" as const,
        sentence: `ledger: ${x} streams excluded as ${reason} against ${y}.`,
        left: x,
        right: y,
      };
    });
}

function diffTotals(a: TrainerBatch, b: TrainerBatch): BatchDifference[] {
  const totals = (["rows", "samples", "rewardSum", "advantageSum"] as const)
    .filter((name) => a.totals[name] !== b.totals[name])
    .map(
      (name): BatchDifference => ({
        what: `totals.${name}`,
        role: "effect",
        sentence: `${name}: ${a.totals[name]} against ${b.totals[name]}.`,
        left: a.totals[name],
        right: b.totals[name],
      }),
    );
  const shards = exclusive(
    a.shards.map((each) => each.digest),
    b.shards.map((each) => each.digest),
  );
  if (shards[0].length + shards[1].length === 0) return totals;
  return [
    ...totals,
    {
      what: "shards",
      role: "effect",
      sentence: `shards: ${shards[0].length} of ${a.shards.length} and ${shards[1].length} of ${b.shards.length} hold other bytes.`,
      left: shards[0],
      right: shards[1],
    },
  ];
}

function exclusive<T>(left: readonly T[], right: readonly T[]): [T[], T[]] {
  const [inLeft, inRight] = [new Set(left), new Set(right)];
  return [left.filter((each) => !inRight.has(each)), right.filter((each) => !inLeft.has(each))];
}

function named(only: readonly [readonly string[], readonly string[]]): string {
  const all = [...only[0], ...only[1]];
  return all.length > 4 ? "" : ` (${all.join(", ")})`;
}

function show(value: unknown): string {
  return value === undefined ? "unset" : String(value);
}

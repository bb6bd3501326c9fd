/** Describes the differences between two batches in words: causes first (manifest, seed, options), then effects. */
import type { Digest } from "../../base/index.ts";
import {
  LossLedger,
  Manifest,
  PolicyRevisionLineage,
  type ReadBlob,
  TrainerBatch,
} from "../../contract/index.ts";
import { readRecord } from "../../store/index.ts";

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
    ...(a.lineage === b.lineage ? [] : [await diffLineages(read, a.lineage, b.lineage)]),
    ...(a.ledger === b.ledger ? [] : await diffLedgers(read, a.ledger, b.ledger)),
    ...diffTotals(a, b),
  ];
}

async function diffManifests(read: ReadBlob, left: Digest, right: Digest): Promise<BatchDifference[]> {
  const [a, b] = await Promise.all([readRecord(read, Manifest, left), readRecord(read, Manifest, right)]);
  const lists = (manifest: Manifest) => ({
    artifacts: manifest.artifacts.map(({ content }) => content),
    envelopes: manifest.artifacts.map(({ envelope }) => envelope),
    revisions: manifest.revisions,
    verdicts: manifest.verdicts,
    releases: manifest.releases,
    feedback: manifest.feedback,
  });
  const [first, second] = [lists(a), lists(b)];
  return (Object.keys(first) as (keyof typeof first)[]).flatMap((what): BatchDifference[] => {
    const only = exclusive(first[what], second[what]);
    if (isNone(only)) return [];
    return [
      { what: `manifest.${what}`, role: "cause", sentence: `${what}: ${inWords(only)}.`, ...sides(only) },
    ];
  });
}

const CUT_RULES = ["advantage", "feedback", "maxLength", "requireVerdict", "shardTokens"] as const;

function diffInputs(a: TrainerBatch, b: TrainerBatch): BatchDifference[] {
  const inputs = ({ target, selection, seed, options }: TrainerBatch): [string, unknown, string][] => [
    ["target", `${target.id} ${target.digest}`, "they are meant to improve different revisions"],
    ["selection.family", selection.family, "they select different policies"],
    ["selection.level", selection.level, "they select different levels"],
    ["selection.logprobKind", selection.logprobKind, "their logprobs mean different things"],
    ["selection.tokenizer", selection.tokenizer, "their ids mean different tokens"],
    ["seed", seed.toString(), "the rows stand in another order"],
    ...CUT_RULES.map((name): [string, unknown, string] => [
      `options.${name}`,
      options[name],
      "they were assembled with different options",
    ]),
  ];
  const second = inputs(b);
  return inputs(a).flatMap(([what, left, why], i): BatchDifference[] => {
    const right = second[i]![1];
    if (left === right) return [];
    const sentence = `${what}: ${show(left)} against ${show(right)}, so ${why}.`;
    return [{ what, role: "cause", sentence, left, right }];
  });
}

async function diffLineages(read: ReadBlob, left: Digest, right: Digest): Promise<BatchDifference> {
  const [a, b] = await Promise.all([
    readRecord(read, PolicyRevisionLineage, left),
    readRecord(read, PolicyRevisionLineage, right),
  ]);
  const ids = ({ sources }: PolicyRevisionLineage) => sources.map(({ id }) => id);
  const only = exclusive(ids(a), ids(b));
  const about = { what: "lineage", role: "effect" } as const;
  if (isNone(only))
    return { ...about, sentence: "lineage: the same sources, described by different records or targets." };
  return { ...about, sentence: `lineage: ${inWords(only, "source revisions ")}.`, ...sides(only) };
}

async function diffLedgers(read: ReadBlob, left: Digest, right: Digest): Promise<BatchDifference[]> {
  const [a, b] = await Promise.all([readRecord(read, LossLedger, left), readRecord(read, LossLedger, right)]);
  const streams = (ledger: LossLedger) => new Map(ledger.reasons.map((each) => [each.reason, each.streams]));
  const [before, after] = [streams(a), streams(b)];
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((reason) => before.get(reason) !== after.get(reason))
    .map((reason) => {
      const [x, y] = [before.get(reason) ?? 0, after.get(reason) ?? 0];
      const sentence = `ledger: ${x} streams excluded as ${reason} against ${y}.`;
      return { what: `ledger.${reason}`, role: "effect", sentence, left: x, right: y };
    });
}

function diffTotals(a: TrainerBatch, b: TrainerBatch): BatchDifference[] {
  const totals = (["rows", "samples", "rewardSum", "advantageSum"] as const)
    .filter((name) => a.totals[name] !== b.totals[name])
    .map((name): BatchDifference => {
      const [left, right] = [a.totals[name], b.totals[name]];
      const sentence = `${name}: ${left} against ${right}.`;
      return { what: `totals.${name}`, role: "effect", sentence, left, right };
    });
  const digests = ({ shards }: TrainerBatch) => shards.map(({ digest }) => digest);
  const only = exclusive(digests(a), digests(b));
  if (isNone(only)) return totals;
  const sentence = `shards: ${only[0].length} of ${a.shards.length} of the first batch and ${only[1].length} of ${b.shards.length} of the second differ.`;
  return [...totals, { what: "shards", role: "effect", sentence, ...sides(only) }];
}

/** Items only in the first list, and items only in the second. */
type Exclusive<T = unknown> = readonly [first: T[], second: T[]];

function exclusive<T>(left: readonly T[], right: readonly T[]): Exclusive<T> {
  const [inLeft, inRight] = [new Set(left), new Set(right)];
  return [left.filter((each) => !inRight.has(each)), right.filter((each) => !inLeft.has(each))];
}

function isNone([first, second]: Exclusive): boolean {
  return first.length + second.length === 0;
}

function sides([left, right]: Exclusive) {
  return { left, right };
}

function inWords([first, second]: Exclusive, what = ""): string {
  const all = [...first, ...second];
  const names = all.length > 4 ? "" : ` (${all.join(", ")})`;
  return `${first.length} ${what}only in the first, ${second.length} only in the second${names}`;
}

function show(value: unknown): string {
  return value === undefined ? "unset" : String(value);
}

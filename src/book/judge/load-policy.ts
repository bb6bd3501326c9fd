/** Loads a checkpoint for judging: its policy, the rows it has seen, its fallback table and its floor. */
import { readFileSync } from "node:fs";
import { RollbookError } from "../../base/index.ts";
import type { FloorPromise, Sealed } from "../../contract/index.ts";
import type { RouterSetup } from "../../judge/index.ts";
import { baselineOf, type FittedTable, type SeenUnits, type SplitRule, splitOf } from "../../learn/index.ts";
import {
  type AnyFeatureSpec,
  type Checkpoint,
  type Constraints,
  type DecisionPolicy,
  parseStaticTable,
  policyOf,
  readCheckpoint,
  requireKnownNames,
  type StaticTable,
} from "../../policy/index.ts";

export interface LoadedPolicy {
  readonly folder: string;
  readonly checkpoint: Checkpoint;
  readonly policy: DecisionPolicy;
  readonly rule: SplitRule;
  readonly seen: SeenUnits;
}

/** `spec`: a checkpoint that was trained on other features is refused. */
export function loadPolicy(folder: string, spec?: AnyFeatureSpec): LoadedPolicy {
  const checkpoint = readCheckpoint(folder, spec === undefined ? {} : { spec });
  const split = splitOf(checkpoint.model, folder);
  if (split === undefined)
    throw new RollbookError(
      "unknown-split",
      { folder },
      `${folder} does not say which rows it has learned from, so none can judge it. Train a policy from rows with \`rollbook train\`; \`train ppo --env\` learns from a world.`,
    );
  return { folder, checkpoint, policy: policyOf(checkpoint), ...split };
}

/** Router around a policy, with the source of its floor. */
export interface LoadedSetup extends RouterSetup {
  /** Table that always names the best single candidate in training. */
  readonly single?: StaticTable;
  readonly floorFrom: "flag" | "promise" | "default";
  /** Promise of the checkpoint, if it was made for this table and this floor. */
  readonly promise?: Sealed<FloorPromise>;
}

export function setupOf(
  { folder, checkpoint, policy }: LoadedPolicy,
  flags: {
    table?: string | StaticTable | undefined;
    floor?: number | undefined;
    exploration: number;
    constraints?: Constraints | undefined;
    /** Candidates that a table may choose. Another name in a table is a typo, and is refused. */
    known: Iterable<string>;
    offered?: readonly string[] | undefined;
  },
): LoadedSetup {
  const fitted = baselineOf(checkpoint.model);
  const table = tableOf(flags, fitted, folder);
  const { promise } = checkpoint;
  const kept =
    promise !== undefined &&
    promise.record.table === table.digest &&
    (flags.floor === undefined || flags.floor === promise.record.floor);
  return {
    policy,
    table,
    exploration: flags.exploration,
    ...(flags.constraints === undefined ? {} : { constraints: flags.constraints }),
    floor: flags.floor ?? (promise === undefined ? 0 : promise.record.floor),
    floorFrom: flags.floor !== undefined ? "flag" : promise !== undefined ? "promise" : "default",
    ...(fitted === undefined ? {} : { single: singleOf(fitted) }),
    ...(kept ? { promise } : {}),
  };
}

/** Candidates of the log, and those that the policies were trained on. */
export function knownCandidates(
  policies: readonly { readonly checkpoint: Pick<Checkpoint, "model"> }[],
  rows: readonly { readonly candidates: readonly { readonly id: string }[] }[],
): ReadonlySet<string> {
  const known = new Set(policies.flatMap(({ checkpoint }) => checkpoint.model.arms));
  for (const { candidates } of rows) for (const { id } of candidates) known.add(id);
  return known;
}

export function tableOf(
  flags: {
    table?: string | StaticTable | undefined;
    known: Iterable<string>;
    offered?: readonly string[] | undefined;
  },
  fitted: FittedTable | undefined,
  where: string,
): StaticTable {
  if (typeof flags.table === "object") {
    const { table, known, offered = [] } = flags;
    requireKnownNames(table, "the router's table", new Set([...known, ...offered]));
    requireLogged(table, new Set(known));
    return table;
  }
  if (flags.table !== undefined)
    return parseStaticTable(readFileSync(flags.table, "utf8"), flags.table, flags.known);
  if (fitted !== undefined) return parseStaticTable(JSON.stringify(fitted.source), where);
  throw new RollbookError(
    "no-table",
    { where },
    `${where} holds no fitted table: its training rows had no outcomes, or it was trained with --no-baseline. Name one with --table.`,
  );
}

/** Refuses a table of a router that has more candidates than the log. */
function requireLogged({ names }: StaticTable, known: ReadonlySet<string>): void {
  const missing = [...names].filter((name) => !known.has(name));
  if (missing.length === 0) return;
  const them = missing.length === 1 ? "it" : "them";
  throw new RollbookError(
    "unseen-candidate",
    { missing },
    `the router's table: no row of the log offers ${missing.join(", ")}, so this table cannot be judged. Record rows with ${them}, or judge with a table without ${them}.`,
  );
}

function singleOf({ singles }: FittedTable): StaticTable {
  const source = { schema: "rollbook.static-table.v1", default: singles.map(({ id }) => id) };
  return parseStaticTable(JSON.stringify(source), "best single");
}

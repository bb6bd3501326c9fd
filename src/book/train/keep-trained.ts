/** What a training has made, kept: its floor promised, its checkpoint written, and sealed in the book it learned from. */
import { existsSync } from "node:fs";
import type { Digest } from "../../base/index.ts";
import { PolicyRevision } from "../../contract/index.ts";
import { unitOf } from "../../convert/judged-rows.ts";
import type { RoutingRow } from "../../convert/routing-jsonl.ts";
import { type SplitRule, withSplit } from "../../learn/index.ts";
import {
  CHECKPOINT_KIND,
  type PolicyModel,
  readCheckpoint,
  sealCheckpoint,
  writeCheckpoint,
} from "../../policy/index.ts";
import { readRecord } from "../../store/read-record.ts";
import { loadRows } from "../decisions/load-rows.ts";
import { type RowFlags, toDataFlags } from "../../cli/options/row-options.ts";
import { requirePart, type SplitFlags } from "../decisions/split-rows.ts";
import type { Io } from "../../cli/io.ts";
import { bookRoot, isBook, withBook, withIndexedBook } from "../open-book.ts";
import { jsonLine } from "../../view/format.ts";
import { resolveRevision } from "../find/resolve.ts";
import { renderTrained, trainedJson } from "../../view/train-view.ts";
import { promiseFloor } from "../judge/calibrate.ts";
import type { PromiseFlags } from "../../cli/options/judge-options.ts";

export interface TrainFlags extends RowFlags, SplitFlags, PromiseFlags {
  out: string;
  id: string;
  policy: string;
  parent?: string;
  features?: string;
  seed: bigint;
  l2?: number;
  alpha?: number;
  exploration?: number;
  form?: "beta" | "linear";
  draws?: number;
  floor?: number;
  rival?: boolean;
  floorRisk?: number;
  json?: true;
}

/** What a checkpoint is made of, and what to say of it. */
export interface Trained {
  readonly model: PolicyModel;
  /** The digest of the rows, or of the state in the book. */
  readonly data: Digest;
  readonly batches: readonly Digest[];
  readonly rule: SplitRule;
  /** Units learned from. */
  readonly units: readonly string[];
  readonly rows: number;
  /** Rows of the other splits. */
  readonly heldBack: number;
  /** Decisions that were counted for the first time. */
  readonly added?: number;
  readonly report?: object;
}

export async function keepTrained(io: Io, flags: TrainFlags, trained: Trained): Promise<void> {
  const { batches, rule, units } = trained;
  const calibration = await calibrationRows(io, flags, rule);
  const model = withSplit(trained.model, {
    rule,
    units: { train: units, calibration: calibration.map((row) => unitOf(row, rule.unit)) },
  });
  const parent = await parentFrom(io, flags);
  const bare = sealCheckpoint(model, {
    family: flags.policy,
    id: flags.id,
    ...(parent === undefined ? {} : { parent }),
    batches,
    seed: flags.seed,
    producedAtMs: io.clock.nowMs(),
  });
  const promise =
    flags.floorRisk === undefined
      ? undefined
      : promiseFloor(bare, {
          rows: calibration,
          rule,
          alpha: flags.floorRisk,
          flags,
          atMs: io.clock.nowMs(),
        });
  const checkpoint = { ...bare, ...(promise === undefined ? {} : { promise }) };
  const { record, digest, bytes, kind } = checkpoint.revision;
  const isThere = trained.added !== undefined && holds(flags, record);
  if (!isThere) writeCheckpoint(flags.out, checkpoint);
  const sealed = !isThere && flags.data === undefined && isBook(bookRoot(io, flags));
  if (sealed)
    await withBook(io, { ...flags, mode: "write" }, async (book) => {
      book.put(CHECKPOINT_KIND, checkpoint.bytes);
      book.put(kind, bytes);
      if (promise !== undefined) book.put(promise.kind, promise.bytes);
      await book.flush();
    });
  const facts = {
    ...trained,
    out: flags.out,
    id: flags.id,
    revision: isThere ? readCheckpoint(flags.out).revision.digest : digest,
    weights: record.digest,
    sealed,
    promise: promise?.record,
    leastPropensity: calibration.reduce((least, row) => Math.min(least, row.propensity ?? 1), 1),
  };
  io.out(flags.json ? jsonLine(trainedJson(facts)) : renderTrained(facts));
}

/** A folder with a checkpoint or, of what learns from the book, a revision there: one that decided what was logged has no
 *  checkpoint. */
async function parentFrom(
  io: Io,
  { parent, policy, ...flags }: TrainFlags,
): Promise<PolicyRevision | undefined> {
  if (parent === undefined) return undefined;
  if (flags.data !== undefined || existsSync(parent)) return readCheckpoint(parent).revision.record;
  return withIndexedBook(io, flags, (book, index) =>
    readRecord(book, PolicyRevision, resolveRevision(index, parent, policy).digest),
  );
}

/** The rows that set the floor; none where no floor was asked for. */
async function calibrationRows(io: Io, flags: TrainFlags, rule: SplitRule): Promise<readonly RoutingRow[]> {
  if (flags.floorRisk === undefined) return [];
  return requirePart(await loadRows(io, toDataFlags(flags)), "calibration", rule);
}

/** Whether the folder holds this very revision already: then there is nothing to do. */
function holds({ out }: TrainFlags, { id, digest, parent }: PolicyRevision): boolean {
  if (!existsSync(out)) return false;
  const { record } = readCheckpoint(out).revision;
  return record.id === id && record.digest === digest && record.parent?.digest === parent?.digest;
}

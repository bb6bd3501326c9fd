/** The whole dense view in memory, as typed arrays for a trainer.
 *  In: a store. Out: the columns that an actor may see, and separately those that only a learner may see. Chunks are
 *  read directly into the arrays; only segments with fewer candidates per state than the widest are spread out. */

import {
  type ColumnName,
  type ColumnSpec,
  type ColumnsOf,
  type ColumnValues,
  columnOf,
} from "../tables/index.ts";
import { emptyValues, type NumericValues } from "../zarr/index.ts";
import { type PlacedSegment, type ReplayStore, rebase } from "./replay-store.ts";

/** Columns that a policy sees when it decides; none of them depends on the decision. */
export const ACTOR_COLUMNS = ["source", "candidate", "candidate_count", "selectable"] as const;
/** Columns with the decision and its outcome. */
export const SUPERVISION_COLUMNS = [
  ...(["chain", "target", "selected_index", "reward", "return_to_go", "discount"] as const),
  ...(["terminal", "truncated", "next_state"] as const),
  ...(["labelled", "trainable", "selected", "label", "probability"] as const),
] as const;

type DenseActor = ColumnsOf<"q_h", (typeof ACTOR_COLUMNS)[number]>;
type DenseSupervision = ColumnsOf<"q_h", (typeof SUPERVISION_COLUMNS)[number]>;

export interface DenseView {
  readonly states: number;
  /** Cells per state in the padded columns. */
  readonly width: number;
  readonly actor: DenseActor;
  readonly supervision: DenseSupervision;
}

export async function readDense(store: ReplayStore): Promise<DenseView> {
  const columns = async <C extends ColumnName<"q_h">>(names: readonly C[]) =>
    Object.fromEntries(
      await Promise.all(names.map(async (name) => [name, await readColumn(store, name)] as const)),
    ) as ColumnsOf<"q_h", C>;
  return {
    states: store.rows("q_h"),
    width: store.width,
    actor: await columns(ACTOR_COLUMNS),
    supervision: await columns(SUPERVISION_COLUMNS),
  };
}

async function readColumn<C extends ColumnName<"q_h">>(
  store: ReplayStore,
  column: C,
): Promise<ColumnValues<"q_h", C>> {
  const spec = columnOf("q_h", column);
  const width = spec.pad === undefined ? 1 : store.width;
  const out = emptyValues(spec.dtype, store.rows("q_h") * width) as NumericValues;
  for (const segment of store.segments) {
    const from = segment.first.q_h * width;
    const part = out.subarray(from, from + segment.reader.rows("q_h") * width) as NumericValues;
    await readPart(segment, { column, spec, width, part });
    rebase(part, spec, segment.first);
  }
  return out as ColumnValues<"q_h", C>;
}

async function readPart(
  { reader }: PlacedSegment,
  {
    column,
    spec,
    width,
    part,
  }: { column: ColumnName<"q_h">; spec: ColumnSpec; width: number; part: NumericValues },
): Promise<void> {
  const array = await reader.array("q_h", column);
  if (spec.pad === undefined || array.width === width) {
    await array.read({ into: part });
    return;
  }
  part.fill(spec.pad as never);
  for await (const chunk of array.chunks({ reuse: true }))
    spreadRows(chunk.values as NumericValues, array.width, {
      into: part.subarray(chunk.from * width) as NumericValues,
      width,
    });
}

/** Copies rows of `from` cells into rows of `width` cells. */
export function spreadRows(
  values: NumericValues,
  from: number,
  { into, width }: { into: NumericValues; width: number },
): void {
  for (let row = 0; row * from < values.length; row++)
    (into as Uint8Array).set(values.subarray(row * from, (row + 1) * from) as Uint8Array, row * width);
}

/** Writes `q_h` of a segment whose facts are already written. In: the segment. Out: the arrays of q_h. Memory: one
 *  window. */
import { RollbookError } from "../../../base/index.ts";
import { chainWindows, type Returns, type SegmentReader, stepWindows } from "../tables/index.ts";
import type { Store, WrittenArray } from "../zarr/index.ts";
import {
  buildCells,
  buildStates,
  CELL_COLUMNS,
  CELL_NEEDS,
  STATE_COLUMNS,
  STATE_NEEDS,
} from "./dense-view.ts";
import { columnWriters, type Layout } from "./table-writer.ts";

/** Above this number of cells, a view that is nearly all padding is refused. */
const MANY_CELLS = 1 << 26;
const MOST_PADDING = 64;

export async function writeDenseView(
  store: Store,
  segment: SegmentReader,
  { returns, layout }: { returns: Returns; layout: Layout },
): Promise<WrittenArray[]> {
  const { maxCandidates } = segment.shape;
  refusePadding(segment);
  const options = { layout, maxCandidates, expectedRows: segment.rows("steps") };
  const states = columnWriters(store, "q_h", { ...options, columns: STATE_COLUMNS });
  for await (const window of chainWindows(segment, STATE_NEEDS))
    await states.append(buildStates(window, returns));
  const cells = columnWriters(store, "q_h", { ...options, columns: CELL_COLUMNS });
  const width = Math.max(1, maxCandidates);
  for await (const window of stepWindows(segment, CELL_NEEDS)) await cells.append(buildCells(window, width));
  return [...(await states.close()), ...(await cells.close())];
}

function refusePadding(segment: SegmentReader): void {
  const candidates = segment.rows("candidates");
  const { maxCandidates } = segment.shape;
  const cells = segment.rows("steps") * maxCandidates;
  if (cells < MANY_CELLS || cells <= MOST_PADDING * candidates) return;
  throw new RollbookError(
    "dense-view-too-sparse",
    { cells, candidates, maxCandidates },
    `the dense view would have ${cells} cells for ${candidates} candidates, because one step has ${maxCandidates}. Write rollouts with very many candidates into a store of their own.`,
  );
}

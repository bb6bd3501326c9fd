/** Reads from the book the rollouts that a window collected, and those that it learns from and is judged by. */
import type { Digest } from "../base/index.ts";
import type { OpenBook } from "../book/open/index.ts";
import { LoopMembers } from "../contract/index.ts";
import { readRecord } from "../store/index.ts";
import type { LoopConfig } from "./config.ts";
import type { LoopWindow, RunState } from "./fold.ts";

/** Contents of the rollouts of these windows. */
export async function collectedIn(
  book: OpenBook,
  windows: readonly LoopWindow[],
): Promise<ReadonlySet<Digest>> {
  const contents = new Set<Digest>();
  for (const window of windows) {
    const { rollouts } = await readRecord(book.store, LoopMembers, window.need("sealed").step.members);
    for (const { content } of rollouts) contents.add(content);
  }
  return contents;
}

/** Windows whose rollouts a window learns from and is judged by. */
export function sourcesOf(
  { data }: Pick<LoopConfig, "data">,
  state: RunState,
  window: LoopWindow,
): LoopWindow[] {
  return data === "all" ? state.windows.filter(({ number }) => number <= window.number) : [window];
}

/** The conversations of admitted rollouts, for trainers of language models.
 *  In: an open book, filters. Out: conversations one at a time, by rollout id, and what was admitted. What batches leave out
 *  (failures of others, rejected, quarantined) is left out here, too. A conversation that a later call goes on with is part
 *  of that one; forks give one each. */
import { compareUtf8, type Digest } from "../../base/index.ts";
import { type ReadBlob, RolloutContent } from "../../contract/index.ts";
import type { ExportedConversation } from "../../convert/chat/index.ts";
import { readRecord } from "../../keep/admit/index.ts";
import type { OpenBook } from "../open/index.ts";
import { type AdmittedRollouts, admittedRollouts, familiesAt } from "../rollouts/index.ts";
import { conversationsOf, readCalls } from "./calls-of.ts";
import type { DecisionRequest } from "./decision-rows.ts";

export async function admittedConversations(
  book: OpenBook,
  request: DecisionRequest,
): Promise<{ admitted: readonly AdmittedRollouts[]; conversations(): AsyncGenerator<ExportedConversation> }> {
  const admitted = await everyAdmitted(book, request);
  return { admitted, conversations: () => exportedFrom(admitted) };
}

/** Whatever the book admits, at both levels, labelled or not: to hand on, not to learn from. */
export async function everyAdmitted(book: OpenBook, request: DecisionRequest): Promise<AdmittedRollouts[]> {
  const index = await book.index();
  const admitted: AdmittedRollouts[] = [];
  for (const level of ["step", "token"] as const) {
    const families = await familiesAt(book, index, level);
    for (const family of families.filter((each) => request.family === undefined || each === request.family))
      admitted.push(
        await admittedRollouts(book, {
          ...{ ...request, family, level, freshness: "none" },
          ...{ unlabelled: "keep", propensity: "any", logprobs: "any" },
        }),
      );
  }
  return admitted;
}

async function* exportedFrom(admitted: readonly AdmittedRollouts[]): AsyncGenerator<ExportedConversation> {
  // A rollout has several streams: one of them that is labelled says what it was worth.
  const rollouts = new Map<Digest, { rolloutId: string; reward: number | null; read: ReadBlob }>();
  for (const { rows, read } of admitted)
    for (const { content, rolloutId, reward } of rows) {
      const known = rollouts.get(content);
      rollouts.set(content, { rolloutId, read, reward: known?.reward ?? reward });
    }
  const ordered = [...rollouts].sort(([, a], [, b]) => compareUtf8(a.rolloutId, b.rolloutId));
  for (const [digest, { reward, read }] of ordered) {
    const content = await readRecord(read, RolloutContent, digest);
    const scores = content.scores.filter(({ weight }) => weight !== 0);
    const worth =
      scores.length === 0 ? reward : scores.reduce((sum, each) => sum + each.value * each.weight, 0);
    const { rolloutId, task, group = null } = content;
    for (const said of conversationsOf(await readCalls(read, content)))
      yield { ...{ rolloutId, task: task.id, group, reward: worth }, ...said };
  }
}

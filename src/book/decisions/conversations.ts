/** The conversations of admitted rollouts, for trainers of language models.
 *  In: an open book, filters. Out: conversations one at a time, by rollout id, and what was admitted. What batches leave out
 *  (failures of others, rejected, quarantined) is left out here, too. A conversation that a later call goes on with is part
 *  of that one; forks give one each. */
import { compareUtf8, type Digest } from "../../base/index.ts";
import { Call, openMessage, type ReadBlob, RolloutContent } from "../../contract/index.ts";
import { type ChatTurn, type ExportedConversation, readTurn, sameTurn } from "../../convert/chat/index.ts";
import { readRecord } from "../../keep/admit/index.ts";
import type { OpenBook } from "../open/index.ts";
import { type AdmittedRollouts, admittedRollouts, familiesAt } from "../rollouts/index.ts";
import type { DecisionRequest } from "./decision-rows.ts";

export async function admittedConversations(
  book: OpenBook,
  request: DecisionRequest,
): Promise<{ admitted: readonly AdmittedRollouts[]; conversations(): AsyncGenerator<ExportedConversation> }> {
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
  return { admitted, conversations: () => conversationsOf(admitted) };
}

async function* conversationsOf(admitted: readonly AdmittedRollouts[]): AsyncGenerator<ExportedConversation> {
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
    for (const said of await readConversations(read, content))
      yield { ...{ rolloutId, task: task.id, group, reward: worth }, ...said };
  }
}

type Said = Pick<ExportedConversation, "turns" | "model" | "tools">;

async function readConversations(read: ReadBlob, content: RolloutContent): Promise<Said[]> {
  const found: Said[] = [];
  for (const digest of content.calls) {
    const { request, response, model } = await readRecord(read, Call, digest);
    if ((response.status ?? 200) >= 400) continue;
    const turns = await readTurns(read, [...request.messages, ...response.messages]);
    const tools = request.tools === undefined ? {} : { tools: await readJson(read, request.tools) };
    const before = found.findIndex((each) => isBeginning(each.turns, turns));
    if (before >= 0) found.splice(before, 1);
    found.push({ turns, model, ...tools });
  }
  return found;
}

function isBeginning(a: readonly ChatTurn[], b: readonly ChatTurn[]): boolean {
  return a.length <= b.length && a.every((turn, i) => sameTurn(turn, b[i]!));
}

async function readTurns(read: ReadBlob, digests: readonly Digest[]): Promise<ChatTurn[]> {
  return Promise.all(digests.map(async (digest) => readTurn(await readJson(read, digest))));
}

async function readJson(read: ReadBlob, digest: Digest): Promise<unknown> {
  const blob = await read(digest);
  return blob === undefined ? { role: "missing", content: digest } : openMessage(blob.bytes, digest);
}

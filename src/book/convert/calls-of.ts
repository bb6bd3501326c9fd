/** Reads the calls of a rollout with their messages, and the conversations they form.
 *  In: a content record. Out: calls in order, and each conversation once. A conversation that a later call continues
 *  is part of the later one. Each fork is a conversation. */
import type { Digest, Json } from "../../base/index.ts";
import { Call, openMessage, type ReadBlob, type RolloutContent } from "../../contract/index.ts";
import { type ChatTurn, readTurn, sameTurn } from "../../convert/chat/index.ts";
import type { HandedCall, HandedConversation } from "../../convert/handover/index.ts";
import { readRecord } from "../../store/index.ts";

export async function readCalls(read: ReadBlob, content: RolloutContent): Promise<HandedCall[]> {
  const calls: HandedCall[] = [];
  for (const digest of content.calls) {
    const record = await readRecord(read, Call, digest);
    const { request, response } = record;
    calls.push({
      record,
      prompt: await readMessages(read, request.messages),
      reply: await readMessages(read, response.messages),
      ...(request.tools === undefined ? {} : { tools: await readMessage(read, request.tools) }),
    });
  }
  return calls;
}

export function conversationsOf(calls: readonly HandedCall[]): HandedConversation[] {
  const found: HandedConversation[] = [];
  for (const { record, prompt, reply, tools } of calls) {
    if ((record.response.status ?? 200) >= 400) continue;
    const turns = [...prompt, ...reply].map(readTurn);
    const before = found.findIndex((each) => isBeginning(each.turns, turns));
    if (before >= 0) found.splice(before, 1);
    found.push({ turns, model: record.model, ...(tools === undefined ? {} : { tools }) });
  }
  return found;
}

function isBeginning(a: readonly ChatTurn[], b: readonly ChatTurn[]): boolean {
  return a.length <= b.length && a.every((turn, i) => sameTurn(turn, b[i]!));
}

async function readMessages(read: ReadBlob, digests: readonly Digest[]): Promise<Json[]> {
  return Promise.all(digests.map((digest) => readMessage(read, digest)));
}

async function readMessage(read: ReadBlob, digest: Digest): Promise<Json> {
  const blob = await read(digest);
  return blob === undefined
    ? { role: "missing", content: digest }
    : (openMessage(blob.bytes, digest) as Json);
}

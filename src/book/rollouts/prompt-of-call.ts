/** The prompt of a recorded call, as the router read it. In: the digest of a call. Out: text. */
import type { Digest } from "../../base/index.ts";
import { Call, openMessage, type ReadBlob } from "../../contract/index.ts";
import { readRecord } from "../../keep/admit/index.ts";
import { isUsers, promptOfMessages } from "../../policy/index.ts";

/** A rollout without calls has none. */
export async function promptOfCall(read: ReadBlob, digest: Digest | undefined): Promise<string> {
  if (digest === undefined) return "";
  const { request } = await readRecord(read, Call, digest);
  // From the end: a long history is not read for its last question.
  const passed: unknown[] = [];
  for (const message of [...request.messages].reverse()) {
    const blob = await read(message);
    if (blob === undefined) continue;
    passed.unshift(openMessage(blob.bytes, message));
    if (isUsers(passed[0])) break;
  }
  return promptOfMessages(passed);
}

/** Reads the state that the policy saw at a step: prompt, fields of the request, features of the candidates.
 *  In: a content, one of its steps. Out: the state, in the same form for the router's record and for the training
 *  dataset. */
import type { Digest } from "../../base/index.ts";
import {
  Call,
  DECISION_LOG,
  openMessage,
  type ReadBlob,
  type RolloutContent,
  type Step,
  Task,
} from "../../contract/index.ts";
import { stateOfTask } from "../../convert/index.ts";
import { isUsers, promptOfMessages } from "../../policy/index.ts";
import { readRecord } from "../../store/index.ts";

type SeenState = ReturnType<typeof stateOfTask> & {
  /** Cost of the call, if the gateway recorded it. */
  readonly costUsd?: number | undefined;
};

export async function seenBy(read: ReadBlob, content: RolloutContent, step: Step): Promise<SeenState> {
  const place = seenIn(content, step);
  switch (place.kind) {
    case "task": {
      const state = stateOfTask(await readRecord(read, Task, place.task));
      return { ...state, fields: step.seen ?? state.fields };
    }
    case "call":
      return { ...(await promptOfCall(read, place.call)), fields: step.seen ?? {}, features: {} };
    default:
      return place satisfies never;
  }
}

/** Place of the prompt in the record. A decision without a call has its prompt in the task; the environment marks such
 *  a decision. */
type SeenIn =
  | { readonly kind: "task"; readonly task: Digest }
  | { readonly kind: "call"; readonly call: Digest | undefined };

function seenIn({ environment, task, calls }: RolloutContent, step: Step): SeenIn {
  return environment === DECISION_LOG && task.digest !== undefined
    ? { kind: "task", task: task.digest }
    : { kind: "call", call: calls[step.call ?? 0] };
}

/** Prompt of a call; empty for a rollout without calls. */
async function promptOfCall(
  read: ReadBlob,
  digest: Digest | undefined,
): Promise<Pick<SeenState, "prompt" | "costUsd">> {
  if (digest === undefined) return { prompt: "" };
  const { request, costUsd } = await readRecord(read, Call, digest);
  // Reads from the end, so that a long history is not read for its last question.
  const passed: unknown[] = [];
  for (const message of [...request.messages].reverse()) {
    const blob = await read(message);
    if (blob === undefined) continue;
    passed.unshift(openMessage(blob.bytes, message));
    if (isUsers(passed[0])) break;
  }
  return { prompt: promptOfMessages(passed), costUsd };
}

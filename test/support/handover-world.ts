/** Groups of token rollouts with conversations and tasks, in the exchange form, for the conversions to trainers. */
import { parseId } from "../../src/base/ids.ts";
import { decodeWire, encodeWire, PolicyRevision, seal, Task } from "../../src/contract/index.ts";
import { draftWire, FAMILY, makeRevision, weightsOf } from "./shelf.ts";

type Wire = Record<string, unknown>;

export interface HandedOptions {
  /** Number of the question, which gives the task and the group. */
  readonly question?: number;
  readonly reward?: number | null;
  readonly over?: Wire;
  readonly stream?: Wire;
  readonly reply?: string;
}

export function taskWire(question: number): Wire {
  return {
    schema: Task.kind,
    id: `sum-${question}`,
    environment: "env.sums@1",
    payload: { question: `What is ${question} + 1?`, answer: question + 1, deep: { list: [1] } },
    prompt: `What is ${question} + 1?`,
    label: question + 1,
    dataSource: "synthetic",
  };
}

/** A system prompt, a question and a reply. Token ids 1 … 6; the last three were sampled. */
export function handedWire(name: string, options: HandedOptions = {}): Wire {
  const { question = 1, reward = 1, over = {}, stream = {}, reply = `${question + 1}` } = options;
  const task = seal(Task, decodeWire(Task, taskWire(question), "task"));
  const ids = [1, 2, 3, 10 + question, 20, 21];
  return draftWire(
    name,
    {
      environment: "env.sums@1",
      task: { id: `sum-${question}`, digest: task.digest },
      group: `g-${question}`,
      calls: [
        {
          dialect: "openai-chat",
          model: "tiny",
          request: {
            messages: [
              { role: "system", content: "You add." },
              { role: "user", content: `What is ${question} + 1?` },
            ],
            parameters: { temperature: 1 },
          },
          response: { messages: [{ role: "assistant", content: reply }], finishReason: "stop", status: 200 },
          usage: { promptTokens: 3, completionTokens: 3 },
        },
      ],
      ...over,
    },
    {
      ids,
      logprobs: [0, 0, 0, -0.5, -0.25, -0.125],
      mask: [0, 0, 0, 1, 1, 1],
      rewards: reward === null ? undefined : [0, 0, 0, 0, 0, reward],
      revision: undefined,
      segments: [
        { start: 0, end: 6, call: 0, revision: { id: "policy-r1", digest: weightsOf("policy-r1") } },
      ],
      ...stream,
    },
  );
}

export function revisionWires(): Wire[] {
  return [1, 2].map((n) =>
    encodeWire(
      PolicyRevision,
      makeRevision(`policy-r${n}`, { number: BigInt(n), family: parseId(FAMILY) }).record,
    ),
  ) as Wire[];
}

/** Groups of `size` rollouts with rewards from 0 upwards, and the records they need. */
export function handedRecords({ questions = 3, size = 4, extra = [] as readonly Wire[] } = {}): Wire[] {
  const rollouts = Array.from({ length: questions * size }, (_, i) => {
    const question = Math.floor(i / size);
    const n = i % size;
    return handedWire(`r-${question}-${n}`, {
      ...{ question, reward: n / size, reply: `it is ${i}` },
      stream: { ids: [1, 2, 3, 10 + question, 20 + n, 30 + n] },
    });
  });
  const tasks = Array.from({ length: Math.max(4, questions + 1) }, (_, i) => taskWire(i));
  return [...revisionWires(), ...tasks, ...rollouts, ...extra];
}

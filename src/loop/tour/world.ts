/** Makes the small world of the tour: sums to solve, two policies that solve them, and all kinds of failures.
 *  In: a seed. Out: revisions, tasks, assignments and rollout drafts. Pure: the same seed, the same bytes. */
import { parseId, type Rng, rngFrom } from "../../base/index.ts";
import {
  Assignment,
  type Ending,
  type RolloutDraft,
  type Sealed,
  sampleSeed,
  seal,
  Task,
} from "../../contract/index.ts";
import { type DemoRevision, draw, keyOf, makeRevision, ROUTER, STRATEGIES, WRITER } from "./policies.ts";

export interface World {
  readonly writers: readonly DemoRevision[];
  readonly routers: readonly DemoRevision[];
  readonly tasks: readonly Sealed<Task>[];
  readonly assignments: readonly Sealed<Assignment>[];
  readonly drafts: readonly RolloutDraft[];
}

export const TASKS = 9;
export const SAMPLES = 4;
const DIGITS = 10;
const ENVIRONMENT = "env.sums@1" as Task["environment"];
/** Token ids after the digits. */
const PLUS = 10;
const EQUALS = 11;
const THOUGHT = 12;
const STARTED_AT_MS = 1_700_000_600_000;

/** Endings of some rollouts, by number. All others end normally. */
const ENDINGS: Readonly<Record<number, Ending>> = {
  5: { kind: "failed", owner: "agent", message: "answered in prose" },
  10: { kind: "failed", owner: "provider", message: "503 from upstream" },
  15: { kind: "failed", owner: "sandbox", message: "out of memory" },
  20: { kind: "failed", owner: "infrastructure", message: "worker lost power" },
  25: { kind: "truncated", limit: "tokens" },
  26: { kind: "cancelled" },
  33: { kind: "failed", owner: "task", message: "the task has no answer" },
};
/** Number of a rollout that is not graded yet. */
export const UNLABELLED = 7;

export function makeWorld(seed: bigint): World {
  const rng = rngFrom(seed);
  const writers = revisions(WRITER, 3, (number, digit) => (digit % 2 === 0 ? 0.4 * number : 0), DIGITS);
  const routers = revisions(
    ROUTER,
    2,
    (number, strategy) => (strategy === 1 ? 0.5 * number : 0),
    STRATEGIES.length,
  );
  const tasks = Array.from({ length: TASKS }, (_, i) => makeTask(i, rng.split("tasks").split(i)));
  const assignments = tasks.map((task) =>
    seal(Assignment, {
      id: parseId(`assignment-${task.record.id}`),
      environment: ENVIRONMENT,
      task: { id: task.record.id, digest: task.digest },
      group: parseId(`group-${task.record.id}`),
      samples: SAMPLES,
      seed: rng.split("assignments").u64(),
    }),
  );
  const drafts = assignments.flatMap((assignment, t) =>
    Array.from({ length: SAMPLES }, (_, sample) =>
      makeDraft({
        number: t * SAMPLES + sample,
        task: tasks[t]!.record,
        assignment,
        sample,
        writers,
        routers,
      }),
    ),
  );
  return { writers, routers, tasks, assignments, drafts };
}

function revisions(
  family: typeof WRITER,
  count: number,
  logit: (number: number, index: number) => number,
  size: number,
): DemoRevision[] {
  const made: DemoRevision[] = [];
  for (let number = 1; number <= count; number++) {
    const logits = Float32Array.from({ length: size }, (_, index) => logit(number, index));
    made.push(makeRevision({ family, number, logits, parent: made.at(-1) }));
  }
  return made;
}

function makeTask(index: number, rng: Rng): Sealed<Task> {
  const [a, b] = [rng.below(5), rng.below(5)];
  return seal(Task, {
    id: parseId(`sum-${index + 1}`),
    environment: ENVIRONMENT,
    payload: { question: `${a} + ${b} = ?`, a, b },
    label: a + b,
    dataSource: "synthetic",
  });
}

interface DraftOptions {
  readonly number: number;
  readonly task: Task;
  readonly assignment: Sealed<Assignment>;
  readonly sample: number;
  readonly writers: readonly DemoRevision[];
  readonly routers: readonly DemoRevision[];
}

function makeDraft({ number, task, assignment, sample, writers, routers }: DraftOptions): RolloutDraft {
  const seed = sampleSeed(assignment.digest, sample);
  const rng = rngFrom(seed);
  // The first five tasks ran on the first revision. Its successor then took over in the middle of a rollout.
  const writer = writers[number < 20 ? 0 : 1]!;
  const route = draw(routers[0]!.logits, rng);
  const thoughts = route.choice === 0 ? 0 : 2;
  const { a, b } = task.payload as { a: number; b: number };
  const sampled = Array.from({ length: thoughts + 1 }, () => draw(writer.logits, rng));
  const answer = sampled.at(-1)!.choice;
  const reward = (answer === task.label ? 1 : 0) - 0.125 * thoughts;
  const labelled = number !== UNLABELLED;
  const prompt = [a, PLUS, b, EQUALS];
  const ids = [...prompt, ...sampled.map(({ choice }, i) => (i < thoughts ? THOUGHT + choice : choice))];
  const zeros = prompt.map(() => 0);
  const start = STARTED_AT_MS + number * 1000;
  return {
    rolloutId: parseId(`r-${String(number + 1).padStart(4, "0")}`),
    environment: ENVIRONMENT,
    task: assignment.record.task,
    assignment: { digest: assignment.digest, sample },
    ...(assignment.record.group === undefined ? {} : { group: assignment.record.group }),
    seed,
    dataSource: "synthetic",
    sampling: { temperature: 1 },
    calls: [callOf(task, writer, String(answer))],
    streams: [
      {
        level: "token",
        family: WRITER,
        logprobKind: "sampling",
        segments: segmentsOf({ number, length: ids.length, writers, writer }),
        ids,
        logprobs: [...zeros, ...sampled.map(({ logprob }) => logprob)],
        mask: [...zeros, ...sampled.map(() => 1)],
        turns: [...zeros, ...sampled.map(() => 1)],
        ...(labelled ? { rewards: [...zeros, ...sampled.map((_, i) => (i === thoughts ? reward : 0))] } : {}),
      },
      {
        level: "step",
        family: ROUTER,
        steps: [
          {
            revision: keyOf(routers[0]!),
            turn: 0,
            candidates: STRATEGIES.map((id, i) => ({
              id,
              selectable: true,
              reasons: [],
              probability: route.probabilities[i]!,
            })),
            chosen: route.choice,
            reward: labelled ? reward : null,
          },
        ],
      },
    ],
    scores: labelled ? [{ name: parseId("correct"), value: answer === task.label ? 1 : 0, weight: 1 }] : [],
    ending: ENDINGS[number + 1] ?? { kind: "terminal" },
    envelope: {
      worker: parseId(`worker-${(number % 3) + 1}`),
      startedAtMs: start,
      endedAtMs: start + 40 + sampled.length,
    },
  };
}

/** One rollout spans the hot swap: one revision read its prompt, the next one gave its answer. */
function segmentsOf(options: {
  number: number;
  length: number;
  writers: readonly DemoRevision[];
  writer: DemoRevision;
}) {
  const { number, length, writers, writer } = options;
  if (number !== 20) return [{ start: 0, end: length, call: 0, revision: keyOf(writer) }];
  return [
    { start: 0, end: 4, revision: keyOf(writers[0]!) },
    { start: 4, end: length, call: 0, revision: keyOf(writer) },
  ];
}

function callOf(task: Task, writer: DemoRevision, answer: string): RolloutDraft["calls"][number] {
  return {
    dialect: "openai-chat",
    model: "writer",
    revision: { family: WRITER, ...keyOf(writer) },
    request: {
      messages: [{ role: "user", content: task.payload.question }],
      parameters: { temperature: 1 },
    },
    response: { messages: [{ role: "assistant", content: answer }], finishReason: "stop", status: 200 },
  };
}

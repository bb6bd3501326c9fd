/** Scores stored rollouts again. In: envelopes in a book, a scorer. Out: new sealed feedback records beside the old
 *  artifacts, which stay unchanged. Scoring twice with one scorer counts once: the key is the scorer's digest. Does not
 *  select rollouts and does not assemble batches: `batch assemble --feedback NAME` reads the records. */
import { type Clock, type Digest, type Json, parseId } from "../../../base/index.ts";
import {
  Feedback,
  RolloutContent,
  RolloutEnvelope,
  type Signer,
  seal,
  Task,
} from "../../../contract/index.ts";
import { type BlobStore, makeSealer, readRecord } from "../../../store/index.ts";
import { type RewardInput, type Scorer, totalOf } from "../agent/index.ts";
import { RecentRecords } from "../worker/index.ts";
import { readUsage } from "./result.ts";

interface Rescored {
  readonly envelope: Digest;
  readonly content: Digest;
  /** Rewards of the artifact and of the scorer. Null: no reward. */
  readonly before: number | null;
  readonly after: number | null;
  readonly feedback: Digest[];
}

export async function rescore(
  envelopes: Iterable<Digest>,
  options: {
    readonly book: Pick<BlobStore, "get" | "put" | "flush">;
    readonly scorer: Scorer;
    /** The name of the total in the feedback. Its terms are named NAME.TERM. */
    readonly name: string;
    readonly clock: Clock;
    readonly signer?: Signer;
  },
): Promise<Rescored[]> {
  const { book, scorer, name, clock, signer } = options;
  const sealer = makeSealer(book, signer);
  const results: Rescored[] = [];
  for (const envelope of envelopes) {
    const input = await readInput(book, envelope);
    const scores = await scorer.score(input);
    const after = totalOf(scores);
    const values =
      after === null
        ? []
        : [[name, after] as const, ...scores.map((s) => [`${name}.${s.name}`, s.value] as const)];
    const records = values.map(([each, value]) =>
      seal(Feedback, {
        subject: input.content,
        name: parseId(each, "name"),
        value,
        source: `scorer ${scorer.name} ${scorer.digest}`,
        idempotencyKey: scorer.digest,
        atMs: clock.nowMs(),
      }),
    );
    await Promise.all(records.map((record) => sealer.add({ envelope: record, blobs: [record] })));
    results.push({
      envelope,
      content: input.content,
      before: input.before,
      after,
      feedback: records.map((r) => r.digest),
    });
  }
  return results;
}

/** Restores the scorer's input at the end of the rollout from its records. */
async function readInput(
  book: Pick<BlobStore, "get">,
  digest: Digest,
): Promise<RewardInput & { readonly content: Digest; readonly before: number | null }> {
  const envelope = await readRecord(book, RolloutEnvelope, digest);
  const content = await readRecord(book, RolloutContent, envelope.content);
  const task =
    content.task.digest === undefined ? undefined : await readRecord(book, Task, content.task.digest);
  const state = content.finalState === undefined ? undefined : await book.get(content.finalState);
  const own = content.scores.filter(({ scorer }) => scorer === undefined);
  const before = totalOf(content.scores);
  return {
    content: envelope.content,
    before,
    task:
      task === undefined
        ? { payload: {} }
        : { payload: task.payload, prompt: task.prompt, label: task.label },
    ending: content.ending,
    claimed: own.find(({ name }) => name === "reward")?.value ?? totalOf(own),
    metrics: Object.fromEntries(
      own.filter(({ weight }) => weight === 0).map(({ name, value }) => [name, value]),
    ),
    ...(state === undefined ? {} : { finalState: JSON.parse(Buffer.from(state.bytes).toString()) as Json }),
    usage: await readUsage(new RecentRecords(book), content),
    durationMs: envelope.endedAtMs - envelope.startedAtMs,
    attempt: envelope.attempt,
  };
}

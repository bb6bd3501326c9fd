/** Why a recorded call went to the model it went to: every decision of the call, in plain words.
 *  In: an open book, the name of a call. Out: one explanation for each step; a failover is a second step. The features that
 *  mattered are told where the book holds the checkpoint of the policy. Writes nothing. */
import { RollbookError, short } from "../../base/index.ts";
import { RolloutContent, type Step, type StepStream } from "../../contract/index.ts";
import type { DecisionReason } from "../../policy/index.ts";
import { type Explanation, explainDecision } from "../../serve/index.ts";
import { readRecord } from "../../store/index.ts";
import { type OpenBook, resolveArtifact } from "../open/index.ts";
import { seenBy } from "../rollouts/index.ts";
import { checkpointOf, judgedAs } from "./releases.ts";

export interface ExplainedCall {
  readonly rollout: string;
  readonly call: number;
  readonly steps: readonly ExplainedStep[];
}

interface ExplainedStep extends Explanation {
  readonly family: string;
  /** The router that decided, and the policy behind it. */
  readonly router: Step["revision"];
  readonly policy: Step["revision"] | null;
  readonly reward: number | null;
}

/** `name`: `<rollout>.<number>` as the gateway's replies carry it, or a rollout of one call. */
export async function explainCall(book: OpenBook, name: string): Promise<ExplainedCall> {
  const { rollout, content, call } = await findCall(book, name);
  const decided = content.streams
    .filter((stream): stream is StepStream => stream.level === "step")
    .flatMap(({ family, steps }) => steps.map((step) => ({ family, step })))
    .filter(({ step }) => (step.call ?? 0) === call);
  if (decided.length === 0)
    throw new RollbookError(
      "no-decision",
      { rollout, call },
      `${rollout}: call ${call} was not routed: no step of the rollout belongs to it. The agent named its model itself.`,
    );
  const steps: ExplainedStep[] = [];
  for (const { family, step } of decided) {
    const { prompt } = await seenBy((digest) => book.store.get(digest), content, step);
    steps.push(await explainStep(book, { family, step, prompt }));
  }
  return { rollout, call, steps };
}

async function findCall(book: OpenBook, name: string) {
  const index = await book.index();
  const [, numbered = name, digits] = /^(.+)\.(\d+)$/.exec(name) ?? [];
  // A rollout's own name may end like a call's.
  const isWhole = index.named(name).some(({ kind }) => kind === RolloutContent.kind);
  const { content: found } = resolveArtifact(index, isWhole ? name : numbered);
  const content = await readRecord(book.store, RolloutContent, found.digest);
  const call = isWhole || digits === undefined ? 0 : Number(digits);
  const calls = Math.max(content.calls.length, 1);
  if (call < calls && (digits !== undefined || calls === 1)) return { rollout: found.id!, content, call };
  throw new RollbookError(
    "unknown-call",
    { rollout: found.id, call, calls },
    call < calls
      ? `${found.id} has ${calls} calls. Name one of them: ${found.id}.0 … ${found.id}.${calls - 1}.`
      : `${found.id} has ${calls} calls; there is no call ${call}. Count from 0.`,
  );
}

async function explainStep(
  book: OpenBook,
  { family, step, prompt }: { family: string; step: Step; prompt: string },
): Promise<ExplainedStep> {
  const { revision, policy, confidence, shadow, chosen } = step;
  const checkpoint = policy === undefined ? undefined : await checkpointOf(book, policy);
  const judged = await judgedAs(book, revision.digest);
  const explanation = explainDecision({
    decision: {
      ...{ chosen, confidence: confidence ?? null, reason: (step.reason ?? "no-policy") as DecisionReason },
      probabilities: step.candidates.map(({ probability }) => probability ?? Number.NaN),
      ...(shadow === undefined ? {} : { shadow }),
    },
    context: { prompt, fields: step.seen ?? {} },
    candidates: step.candidates.map(({ id, selectable, reasons, seen }) => ({
      ...{ id, selectable, reasons, features: seen ?? {} },
    })),
    model: checkpoint?.model,
    router: judged === undefined ? undefined : { ...judged.router, floor: judged.router.floor ?? 1 },
    why: whyOf(step, { isHeld: checkpoint !== undefined, verdict: judged?.verdict }),
  });
  return { ...explanation, family, router: revision, policy: policy ?? null, reward: step.reward };
}

function whyOf({ revision, policy }: Step, about: { isHeld: boolean; verdict?: string | undefined }): string {
  const { isHeld, verdict } = about;
  const judged = verdict === undefined ? "" : `, judged by the gate verdict ${short(verdict)}`;
  if (policy === undefined)
    return `${revision.id} (${short(revision.digest)}), without a learned policy${judged}`;
  const lost = isHeld ? "" : "; its checkpoint is not in this book, so its features cannot be told";
  return `${revision.id} (${short(revision.digest)}) around revision ${policy.id}${judged}${lost}`;
}

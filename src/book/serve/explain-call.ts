/** Explains why a recorded call went to its model: every decision of the call, in plain words.
 *  In: an open book, the name of a call. Out: one explanation for each step; a failover is a second step. Lists the
 *  features that mattered if the book holds the checkpoint of the policy. Writes nothing. */
import { given, plural, RollbookError, short } from "../../base/index.ts";
import { NAMED_FAMILY } from "../../collect/gateway/index.ts";
import { agentName } from "../../collect/rollout/index.ts";
import { Call, RolloutContent, type Step, type StepStream } from "../../contract/index.ts";
import type { DecisionReason } from "../../policy/index.ts";
import { type Explanation, explainDecision } from "../../serve/index.ts";
import { readRecord } from "../../store/index.ts";
import { type BookIndex, decisionIn, type OpenBook, resolveArtifact, resolveCall } from "../open/index.ts";
import { isRewardedLater, seenBy } from "../rollouts/index.ts";
import { fallbackOf } from "./fallback-of.ts";
import { type RecordedRouter, recordedRouter } from "./named-router.ts";
import { checkpointOf, judgedAs } from "./policy-releases.ts";

export interface ExplainedCall {
  readonly rollout: string;
  readonly call: number;
  readonly steps: readonly ExplainedStep[];
}

interface ExplainedStep extends Explanation {
  readonly family: string;
  /** Router that decided; `policy` is the policy inside it. */
  readonly router: Step["revision"];
  readonly policy: Step["revision"] | null;
  /** Null if unlabelled, or if the reward of the rollout came later and is stored at its last choice. */
  readonly reward: number | null;
  readonly isRewardedLater: boolean;
}

/** `name` is `<rollout>.<number>` as in the gateway's replies, the id of a rollout with a single call, or the id of a
 *  decision. */
export async function explainCall(book: OpenBook, name: string): Promise<ExplainedCall> {
  const { rollout, content, call, only } = await findCall(book, name);
  const routed = content.streams
    .filter((stream): stream is StepStream => stream.level === "step" && stream.family !== NAMED_FAMILY)
    .flatMap((stream) =>
      stream.steps.filter(isRouted).map((step) => ({
        ...{ family: stream.family, step, of: step.call ?? 0 },
        isLater: isRewardedLater(step, stream),
      })),
    );
  const decided = routed.filter(({ of, step }) => (only === undefined ? of === call : step === only));
  if (decided.length === 0) {
    const others = [...new Set(routed.map(({ of }) => `${rollout}.${of}`))];
    throw new RollbookError(
      "no-decision",
      { rollout, call, routed: others },
      content.calls.length === 0
        ? `${rollout} has no model call, so there is no choice to explain.`
        : `${rollout}: call ${call} was not routed: no step of the rollout belongs to it. The agent named its model itself. ${others.length === 0 ? "No call of this rollout was routed." : `Routed: ${listed(others, others.length)}.`}`,
    );
  }
  const steps: ExplainedStep[] = [];
  for (const { family, step, isLater } of decided) {
    const { prompt } = await seenBy((digest) => book.store.get(digest), content, step);
    const explained = await explainStep(book, { family, step, prompt });
    steps.push({ ...explained, reward: isLater ? null : step.reward, isRewardedLater: isLater });
  }
  return { rollout, call, steps };
}

/** A rollout without a gateway has one step: the agent's own file, as its only choice. No router took part in it. */
function isRouted({ revision: { id, digest } }: Step): boolean {
  return id !== agentName(digest);
}

interface FoundCall {
  readonly rollout: string;
  readonly content: RolloutContent;
  readonly call: number;
  /** Set if the name is that of one decision: a failover gives a call a second one. */
  readonly only?: Step;
}

async function findCall(book: OpenBook, name: string): Promise<FoundCall> {
  const index = await book.index();
  const decision = decisionIn(name);
  if (decision !== undefined) return findDecision(book, index, decision);
  const { artifact, call: named } = resolveCall(index, name);
  const { content: found } = artifact;
  const content = await readRecord(book.store, RolloutContent, found.digest);
  const call = named ?? 0;
  const calls = Math.max(content.calls.length, 1);
  if (call < calls && (named !== undefined || calls === 1)) return { rollout: found.id!, content, call };
  if (content.calls.length === 0)
    throw new RollbookError(
      "unknown-call",
      { rollout: found.id, call, calls: 0 },
      `${found.id} has no recorded calls. Leave out .${call} to explain its decision: \`rollbook route explain ${found.id}\`.`,
    );
  const shown = await Promise.all(
    content.calls.slice(0, MOST_LISTED).map(async (digest, i) => {
      const { model } = await readRecord(book.store, Call, digest);
      return `${found.id}.${i} (${model})`;
    }),
  );
  throw new RollbookError(
    "unknown-call",
    { rollout: found.id, call, calls },
    `${found.id} has ${plural(calls, "call")}${call < calls ? "" : `, and no call ${call}`}: ${listed(shown, calls)}. Name one of them, for example \`rollbook route explain ${found.id}.0\`.`,
  );
}

async function findDecision(
  book: OpenBook,
  index: BookIndex,
  { rollout: name, stream: at, step: number }: NonNullable<ReturnType<typeof decisionIn>>,
): Promise<FoundCall> {
  const found = resolveArtifact(index, name).content;
  const content = await readRecord(book.store, RolloutContent, found.digest);
  const rollout = found.id!;
  const stream = content.streams[at];
  const only = stream?.level === "step" ? stream.steps[number] : undefined;
  if (only !== undefined) return { rollout, content, call: only.call ?? 0, only };
  throw new RollbookError(
    "no-decision",
    { rollout, stream: at, step: number },
    `${rollout} has no decision ${at}/${number} (stream/step). Give the rollout alone: \`rollbook route explain ${rollout}\`.`,
  );
}

/** Maximum number of calls that an error lists. */
const MOST_LISTED = 8;

/** First names of the list, and the number of the remaining ones out of `total`. */
function listed(names: readonly string[], total: number): string {
  const first = names.slice(0, MOST_LISTED);
  const more = total - first.length;
  return `${first.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

async function explainStep(
  book: OpenBook,
  { family, step, prompt }: { family: string; step: Step; prompt: string },
): Promise<Omit<ExplainedStep, "reward" | "isRewardedLater">> {
  const { revision, policy, confidence, shadow, chosen, relaxed } = step;
  const checkpoint = policy === undefined ? undefined : await checkpointOf(book, policy);
  const judged = await judgedAs(book, revision.digest);
  const recorded = await recordedRouter(book, revision.digest);
  const explanation = explainDecision({
    decision: {
      ...{ chosen, confidence: confidence ?? null, reason: reasonOf(step, recorded) },
      // An imported row may log only the probability of the chosen candidate.
      probabilities: step.candidates.map(
        ({ probability }, i) => probability ?? (i === chosen ? step.propensity : undefined) ?? Number.NaN,
      ),
      ...given({ shadow, relaxed }),
    },
    context: { prompt, fields: step.seen ?? {} },
    candidates: step.candidates.map(({ id, selectable, reasons, seen }) => ({
      ...{ id, selectable, reasons, features: seen ?? {} },
    })),
    model: checkpoint?.model,
    fallback: fallbackOf(step, recorded),
    router: recorded ?? settingsOf(judged),
    why: whyOf(step, { isHeld: checkpoint !== undefined, judged }),
  });
  return { ...explanation, family, router: revision, policy: policy ?? null };
}

function settingsOf(judged: Awaited<ReturnType<typeof judgedAs>>) {
  if (judged === undefined) return undefined;
  const { floor, exploration } = judged.router;
  return { floor: floor ?? 1, exploration };
}

/** An older step of `strategy: softmax` has the reason of a learned policy. */
function reasonOf({ reason = "no-policy", policy }: Step, recorded: RecordedRouter | undefined) {
  const isLearned = policy !== undefined || (recorded?.policy !== undefined && !recorded.policy.declared);
  return (reason === "policy" && !isLearned ? "no-policy" : reason) as DecisionReason;
}

function whyOf(
  { revision, policy, reason }: Step,
  about: { isHeld: boolean; judged: Awaited<ReturnType<typeof judgedAs>> },
): string {
  const { isHeld, judged: by } = about;
  const judged =
    by === undefined
      ? ""
      : `, ${by.isReleased ? "judged" : "judged and not released"} by the gate verdict ${short(by.verdict)}`;
  const unlearned = reason === undefined ? "" : ", without a learned policy";
  if (policy === undefined) return `${revision.id} (${short(revision.digest)})${unlearned}${judged}`;
  const lost = isHeld ? "" : "; its checkpoint is not in this book, so its features cannot be told";
  return `${revision.id} (${short(revision.digest)}) around revision ${policy.id}${judged}${lost}`;
}

/** Outcomes of giving a task to a simulated model: every possible course, with its probability.
 *  In: a proved task, a declared model, the weights of the reward. Out: the exact expectation, and the outcome of a
 *  seed. An executed rollout of that seed has the same outcome. Runs no program: the proof holds all results. */
import { RollbookError } from "../../../base/index.ts";
import { openingMessages, type SimTask, type SolutionFacts, type TaskProof } from "../tasks/index.ts";
import { readLine, wroteLine } from "./environment.ts";
import { type SimModel, skillOf } from "./models.ts";
import { type RewardWeights, rewardOfParts } from "./reward.ts";
import {
  attemptSteps,
  drawOf,
  lookSteps,
  looksFirst,
  type ModelStep,
  messageOf,
  pickCandidate,
  possibleAttempts,
  promptTokensOf,
  SUBMIT,
  TESTS_FAILED,
  TESTS_PASSED,
  tokensOfMessage,
  tokensOfText,
} from "./simulated-model.ts";

export interface ProvedTask {
  readonly task: SimTask;
  readonly proof: TaskProof;
}

interface Outcome {
  readonly reward: number;
  /** Share of the hidden checks passed. */
  readonly quality: number;
  readonly costUsd: number;
  readonly latencyMs: number;
  readonly calls: number;
}

export interface OutcomeModel {
  /** Expectation of every field of an outcome. `passes` is the probability of full quality. */
  readonly expected: Outcome & { readonly passes: number };
  outcome(seed: number): Outcome;
}

export function outcomesOf(
  { task, proof }: ProvedTask,
  model: SimModel,
  weights: RewardWeights,
): OutcomeModel {
  const plan = planOf({ task, proof }, model);
  let expected: OutcomeModel["expected"] | undefined;
  return {
    get expected() {
      expected ??= expectation(plan, weights);
      return expected;
    },
    outcome: (seed) => outcomeOf(plan, weights, seed),
  };
}

export interface CandidateFacts extends SolutionFacts {
  readonly completionTokens: number;
  /** Tokens in the first lines of the observations that follow. */
  readonly observedTokens: number;
}

interface Plan {
  readonly model: SimModel;
  readonly task: SimTask;
  readonly skill: number;
  readonly candidates: readonly CandidateFacts[];
  readonly opened: RunningBill;
  /** The bill after the opening, and after a look if the model looks first. */
  readonly begin: RunningBill;
  readonly firstTurn: number;
  readonly submitTokens: number;
}

/** Cost so far, and the prompt tokens of the next call. */
export interface RunningBill {
  readonly costUsd: number;
  readonly latencyMs: number;
  readonly calls: number;
  readonly promptTokens: number;
}

export function planOf({ task, proof }: ProvedTask, model: SimModel): Plan {
  const facts = [proof.reference, ...(proof.mutants.length > 0 ? proof.mutants : [proof.start])];
  const files = possibleAttempts(task);
  if (proof.task !== task.digest || facts.length !== files.length)
    throw new RollbookError(
      "wrong-proof",
      { task: task.digest, proof: proof.task },
      `the proof at hand is not of task ${task.id}. Generate and prove the tasks again.`,
    );
  const opened: RunningBill = {
    ...{ costUsd: 0, latencyMs: 0, calls: 0 },
    promptTokens: promptTokensOf(openingMessages(task.visible, "tools")),
  };
  const looks = looksFirst(task, model);
  const look = lookSteps(task);
  const observed = look.reduce((sum, { given }) => sum + tokensOfText(readLine(given.path!).length), 0);
  return {
    model,
    task,
    skill: skillOf(model, task.oracle),
    candidates: files.map((each, i) => candidateFacts(attemptSteps(each), facts[i]!)),
    opened,
    begin: looks ? call(opened, model, tokensOfSteps(look), observed) : opened,
    firstTurn: looks ? 1 : 0,
    submitTokens: tokensOfSteps(SUBMIT),
  };
}

function candidateFacts(steps: readonly ModelStep[], facts: SolutionFacts): CandidateFacts {
  const verdict = facts.passesVisible ? TESTS_PASSED : TESTS_FAILED;
  const lines = steps.map(({ tool, given }) => (tool === "write_file" ? wroteLine(given.path!) : verdict));
  return {
    ...facts,
    completionTokens: tokensOfSteps(steps),
    observedTokens: lines.reduce((sum, line) => sum + tokensOfText(line.length), 0),
  };
}

function tokensOfSteps(steps: readonly ModelStep[]): number {
  return tokensOfMessage(messageOf(steps, "tools", 0));
}

/** Uses the same order of operations as `billOf`, so that both give bit-identical results. */
export function call(
  bill: RunningBill,
  { price, latency }: SimModel,
  completion: number,
  observed: number,
): RunningBill {
  return {
    costUsd: bill.costUsd + (bill.promptTokens * price.prompt + completion * price.completion) / 1e6,
    latencyMs: bill.latencyMs + (latency.firstMs + completion * latency.tokenMs),
    calls: bill.calls + 1,
    promptTokens: bill.promptTokens + completion + observed,
  };
}

function outcomeOf(plan: Plan, weights: RewardWeights, seed: number): Outcome {
  const { model, task, candidates } = plan;
  let bill = plan.begin;
  for (let attempt = 1; ; attempt++) {
    const turn = plan.firstTurn + attempt - 1;
    const draw = drawOf({ model: model.name, task: task.digest, seed, turn });
    const right = attempt === 1 ? plan.skill : model.repair;
    const taken = candidates[pickCandidate(draw, right, candidates.length)]!;
    bill = call(bill, model, taken.completionTokens, taken.observedTokens);
    if (taken.passesVisible || attempt >= model.patience) return ended(plan, weights, { bill, taken });
  }
}

export function ended(
  { model, submitTokens }: Plan,
  weights: RewardWeights,
  { bill, taken }: { bill: RunningBill; taken: CandidateFacts },
): Outcome {
  const { costUsd, latencyMs, calls } = call(bill, model, submitTokens, 0);
  const quality = taken.hidden;
  return {
    reward: rewardOfParts(quality, { costUsd, latencyMs }, weights),
    quality,
    costUsd,
    latencyMs,
    calls,
  };
}

/** The finite sum over all courses. */
function expectation(plan: Plan, weights: RewardWeights): OutcomeModel["expected"] {
  const { candidates, model } = plan;
  const sum = { reward: 0, quality: 0, costUsd: 0, latencyMs: 0, calls: 0, passes: 0 };
  const walk = (attempt: number, bill: RunningBill, probability: number): void => {
    const right = attempt === 1 ? plan.skill : model.repair;
    candidates.forEach((taken, i) => {
      const p = probability * (i === 0 ? right : (1 - right) / (candidates.length - 1));
      if (p === 0) return;
      const paid = call(bill, model, taken.completionTokens, taken.observedTokens);
      if (!taken.passesVisible && attempt < model.patience) {
        walk(attempt + 1, paid, p);
        return;
      }
      const leaf = ended(plan, weights, { bill: paid, taken });
      sum.reward += p * leaf.reward;
      sum.quality += p * leaf.quality;
      sum.costUsd += p * leaf.costUsd;
      sum.latencyMs += p * leaf.latencyMs;
      sum.calls += p * leaf.calls;
      if (leaf.quality === 1) sum.passes += p;
    });
  };
  walk(1, plan.begin, 1);
  return sum;
}

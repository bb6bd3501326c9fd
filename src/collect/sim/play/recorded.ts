/** Recorded answers of real models: routing is evaluated on the records, without asking the models again.
 *  In: questions with every model's answer and its correctness. Out: an upstream that gives those answers, a scorer
 *  that uses the recorded correctness, and the exact value of every policy, since every outcome is on record. A token
 *  counts as four characters, because the records hold texts, not counts. An unknown prompt is answered with 404. */
import { digestJson, parseId, RollbookError } from "../../../base/index.ts";
import { type EnvironmentKey, EnvironmentPackage, type Sealed, seal } from "../../../contract/index.ts";
import {
  type Agent,
  compositeReward,
  costTerm,
  defineRollout,
  functionAgent,
  type RewardInput,
  type RolloutFunction,
  type Scorer,
} from "../../rollout/index.ts";
import { chatCompletion, chatStream, type ModelHandler, readChat, refuse } from "../serve/index.ts";
import { candidateOf, type KnownWorld, tokensOfText } from "../world/index.ts";
import { postChat, readAnswer } from "./ask-model.ts";
import { openRoutedRun, type RoutedModel, type RoutedRun, type RunPlace } from "./routed-run.ts";

interface RecordedAnswer {
  readonly response: string;
  /** From 0 to 1. */
  readonly correct: number;
}

export interface RecordedQuestion {
  readonly prompt: string;
  /** Keyed by the model's name. */
  readonly answers: Readonly<Record<string, RecordedAnswer>>;
}

export interface RecordedSet {
  readonly models: readonly RoutedModel[];
  readonly questions: readonly RecordedQuestion[];
  /** The term is −weight at `perUsd` dollars, and proportional below. */
  readonly cost: { readonly weight: number; readonly perUsd: number };
}

export function recordedModels({ models, questions }: RecordedSet): ModelHandler {
  const byPrompt = new Map(questions.map((question) => [question.prompt, question]));
  const names = models.map(({ name }) => name);
  return async (request) => {
    const chat = await readChat(request, names);
    if (chat instanceof Response) return chat;
    if (!names.includes(chat.model))
      return refuse(
        404,
        "model_not_found",
        `there are no recorded answers of ${chat.model}, only of ${names.join(", ")}.`,
      );
    const prompt = chat.messages.findLast(({ role }) => role === "user")?.content ?? "";
    const answer = byPrompt.get(prompt)?.answers[chat.model];
    if (answer === undefined)
      return refuse(
        404,
        "unknown_prompt",
        `${chat.model} has no recorded answer to ${JSON.stringify(prompt.slice(0, 80))}. Send a recorded prompt as it is, as the last message of the user.`,
      );
    const reply = {
      message: { role: "assistant" as const, content: answer.response },
      promptTokens: tokensOfText(prompt.length),
      completionTokens: tokensOfText(answer.response.length),
    };
    return chat.stream ? chatStream(chat, reply) : chatCompletion(chat, reply);
  };
}

/** Rows for a launch: the agent gets the question, the reward gets the recorded correctness. */
export function recordedRows({ questions }: RecordedSet): object[] {
  return questions.map(({ prompt, answers }) => ({
    prompt,
    metadata: { question: prompt },
    label: Object.entries(answers).map(([model, { response, correct }]) => ({ model, response, correct })),
  }));
}

/** For agents that return the answer as `finalState.response`: correct if the records mark that answer as correct. Two
 *  models may give the same answer with different correctness. Then `finalState.model` selects the record. */
function recordedScorer(cost: RecordedSet["cost"]): Scorer {
  return compositeReward({
    name: "recorded",
    terms: [
      { name: "quality", weight: 1, source: { recorded: "correct", version: 1 }, value: correctness },
      costTerm(cost),
    ],
  });
}

/** Asks the question once and returns the answer with the name of its model. */
const askOnce: RolloutFunction = async ({ question }, context) => {
  const asked = context.rolloutConfig.model_id ?? "";
  const messages = [{ role: "user" as const, content: String(question) }];
  const { message, model } = readAnswer(await postChat(context, { model: asked, messages }), asked);
  return { finalState: { response: message.content, model } };
};

export function openRecordedRun(options: RunPlace & { readonly set: RecordedSet }): Promise<RoutedRun> {
  const { set } = options;
  return openRoutedRun({
    ...options,
    rows: recordedRows(set),
    agent: askingAgent(set),
    models: set.models,
    answer: recordedModels(set),
    environment: packageOf(set),
    dataSource: "real",
  });
}

/** Every outcome is on record, so every value is exact. */
export function recordedWorld({ models, questions, cost }: RecordedSet): KnownWorld {
  return {
    contexts: questions.map(({ prompt }) => ({
      prompt,
      fields: { messages: 1, tools: 0, stream: false },
    })),
    candidates: models.map(candidateOf),
    value(question, model) {
      const { prompt, answers } = questions[question]!;
      const { name, price } = models[model]!;
      const { response, correct } = answers[name]!;
      const costUsd =
        (tokensOfText(prompt.length) * price.prompt + tokensOfText(response.length) * price.completion) / 1e6;
      return correct - cost.weight * Math.min(1, costUsd / cost.perUsd);
    },
  };
}

function askingAgent({ cost }: RecordedSet): Agent {
  return functionAgent(defineRollout(askOnce, { scorer: recordedScorer(cost) }), {
    name: "ask-once",
    digest: digestJson("rollbook.sim-agent.v1", { name: "ask-once", version: 1 }),
  });
}

function correctness({ finalState, task, ending }: RewardInput): number | null {
  if (ending.kind === "failed") return ending.owner === "agent" ? 0 : null;
  const { response, model } = (finalState ?? {}) as { response?: unknown; model?: unknown };
  const known = task.label as readonly (RecordedAnswer & { readonly model?: string })[];
  const found = known.filter(
    (each) => each.response === response && (model === undefined || each.model === model),
  );
  const [first] = found;
  if (first !== undefined && found.every(({ correct }) => correct === first.correct)) return first.correct;
  const [what, remedy] =
    first === undefined
      ? ["none of the recorded answers", "Return an answer as the model gave it."]
      : ["on record as right and as wrong", "Return the name of the model, too, as finalState.model."];
  throw new RollbookError(
    "unknown-answer",
    { answers: found.length },
    `the agent's finalState.response is ${what}, so its correctness is unknown. ${remedy}`,
  );
}

function packageOf(set: RecordedSet): Sealed<EnvironmentPackage> {
  const digest = digestJson("rollbook.recorded-set.v1", set);
  return seal(EnvironmentPackage, {
    key: `recorded@${digest.slice(7, 19)}` as EnvironmentKey,
    execution: { entrypoint: "rollbook sim", args: [], maxTurns: 1, timeBudgetMs: 60_000 },
    files: [],
    tools: [],
    datasets: [{ name: parseId("recorded"), digest }],
    rubrics: [{ name: parseId("recorded"), digest: recordedScorer(set.cost).digest }],
    benchmarkProfiles: [],
  });
}

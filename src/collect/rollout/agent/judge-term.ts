/** A reward term that a model gives. In: the gateway, the model, the question. Out: a term.
 *  The gateway records each of its calls as a separate rollout under the term's name, with its own budget.
 *  Model, question, parameters and scale enter the scorer's digest, as the text of a function does.
 *  The grade of a model is a sample: scoring again asks again. */
import { isObject, type Json, RollbookError, reasonOf } from "../../../base/index.ts";
import type { Ending } from "../../../contract/index.ts";
import { isProviderFault } from "../../gateway-replies.ts";
import { failedBy } from "./failure.ts";
import type { RewardInput, RewardTerm } from "./reward.ts";

export interface GraderOptions {
  /** The URL of a gateway, with its token if it needs one. */
  readonly gateway: string | { readonly url: string; readonly token?: string };
  readonly model: string;
  /** Question for the judge. The system prompt asks for {"score": number} on the scale. */
  readonly question: (input: RewardInput) => string;
  readonly name?: string;
  readonly weight?: number;
  /** Lowest and highest score (default: 0 and 1). */
  readonly scale?: readonly [number, number];
  /** Additional fields of the request (default: temperature 0). */
  readonly parameters?: Readonly<Record<string, Json>>;
  /** Dollars for one grade, enforced by the gateway at its prices. */
  readonly budgetUsd?: number;
  /** Maximum number of calls for one grade, if an answer holds no score (default: 2). */
  readonly attempts?: number;
  /** Identifies the values that `question` closes over. */
  readonly version?: string;
}

const ATTEMPTS = 2;

export function judgeTerm(options: GraderOptions): RewardTerm {
  const { name = "judge", weight = 1, model, question, scale = [0, 1], version } = options;
  const parameters = options.parameters ?? { temperature: 0 };
  if (!(scale[0] < scale[1]))
    throw new RollbookError(
      "bad-scorer",
      { scale },
      `the scale of ${name} must rise, and is ${scale.join(" … ")}.`,
    );
  return {
    ...{ name, weight },
    source: { builtin: "judge", model, question: question.toString(), scale: [...scale], parameters },
    ...(version === undefined ? {} : { version }),
    async value(input) {
      // A failed rollout has nothing to grade. A failure of the agent gets the lowest score; other failures get none.
      if (input.ending.kind === "failed") return input.ending.owner === "agent" ? scale[0] : null;
      return grade({ ...options, name, scale, parameters }, question(input));
    },
  };
}

type GraderRequest = GraderOptions & Required<Pick<GraderOptions, "name" | "scale" | "parameters">>;

async function grade(options: GraderRequest, question: string): Promise<number> {
  const { name, scale, model, parameters, budgetUsd, attempts = ATTEMPTS } = options;
  const { id, apiKey } = (await ask(options, "rollouts", {
    task: { id: name },
    maxTurns: attempts,
    ...(budgetUsd === undefined ? {} : { budgetUsd }),
  })) as { id: string; apiKey: string };
  const close = (ending: Ending, score?: number) =>
    ask(options, `rollouts/${encodeURIComponent(id)}/close`, {
      ending,
      // Weight 0: the grade belongs to another rollout and is not a reward of the judge.
      ...(score === undefined ? {} : { scores: [{ name, value: score, weight: 0 }] }),
    });
  const form = `Answer with one JSON object, {"score": number}, where the number is from ${scale[0]} to ${scale[1]}.`;
  const messages = [
    { role: "system", content: form },
    { role: "user", content: question },
  ];
  try {
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const reply = await ask(options, "chat/completions", { ...parameters, model, messages }, apiKey);
      const score = scoreIn(textOf(reply), scale);
      if (score === undefined) continue;
      await close({ kind: "terminal" }, score);
      return score;
    }
  } catch (error) {
    await close({ kind: "failed", owner: "provider", message: reasonOf(error).slice(0, 4096) });
    throw error;
  }
  const message = `the judge ${model} gave no score from ${scale[0]} to ${scale[1]} in ${attempts} answers.`;
  await close({ kind: "failed", owner: "provider", message });
  throw failedBy("provider", message);
}

/** Reads the last object with a score on the scale, because models reason in text before they answer. */
function scoreIn(text: string, [low, high]: readonly [number, number]): number | undefined {
  for (const [found] of [...text.matchAll(/\{[^{}]*\}/g)].reverse()) {
    try {
      const { score } = JSON.parse(found) as { score?: unknown };
      if (typeof score === "number" && score >= low && score <= high) return score;
    } catch {
      // Not JSON: try the object before it.
    }
  }
  return undefined;
}

function textOf(reply: unknown): string {
  const [choice] = isObject(reply) && Array.isArray(reply.choices) ? reply.choices : [];
  const message = isObject(choice) ? choice.message : undefined;
  return isObject(message) && typeof message.content === "string" ? message.content : "";
}

async function ask(
  { gateway, name }: Pick<GraderRequest, "gateway" | "name">,
  path: string,
  body: object,
  key?: string,
): Promise<unknown> {
  const { url, token } = typeof gateway === "string" ? { url: gateway, token: undefined } : gateway;
  const bearer = key ?? token;
  const response = await fetch(`${url.replace(/\/+(v1\/?)?$/, "")}/v1/${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    },
    body: JSON.stringify(body),
  }).catch((cause: unknown) => {
    throw failedBy(
      "infrastructure",
      `${name}: the gateway at ${url} cannot be reached: ${reasonOf(cause)}.`,
      { cause },
    );
  });
  const text = await response.text();
  if (response.ok) return JSON.parse(text);
  const why = `${name}: the gateway answered ${response.status}: ${text.slice(0, 500)}`;
  // A budget, an unknown model or a wrong token stays the same when the rollout runs again.
  throw failedBy(isProviderFault(response.status) ? "provider" : "task", why);
}

/** POST /v1/route: the router's choice without a call. In: the request as a client would send it, or a prompt. Out:
 *  the model with its probability, once the decision is durable. The decision is a separate rollout, so feedback can
 *  name it. The router sees the recorded text: secrets are replaced before the router is called. */
import { type Id, type Json, nearestName } from "../../../base/index.ts";
import type { Step } from "../../../contract/index.ts";
import { type DecisionContext, type PromptVectors, promptOfMessages, stepOf } from "../../../policy/index.ts";
import {
  isObject,
  type JsonObject,
  openAiChat,
  type RequestFacts,
  requestFaults,
} from "../dialects/index.ts";
import { type RedactOptions, redactValue } from "../redact/index.ts";
import type { Rollouts } from "../rollouts/index.ts";
import type { Routes } from "../upstream/index.ts";
import { HttpRefusal, parseText, spliceFields } from "../wire/index.ts";
import { check, routeContext } from "./requests.ts";

interface RouteReply {
  /** Id of the decision. Feedback names it as its rollout. */
  readonly id: Id;
  readonly model: string;
  readonly probability: number | null;
  readonly reason: string | undefined;
  /** Constraints that the model breaks; absent if it breaks none. */
  readonly relaxed: Step["relaxed"];
  readonly confidence: number | undefined;
  readonly family: Id;
  readonly router: Step["revision"];
  readonly policy: Step["policy"];
  readonly candidates: readonly Pick<
    Step["candidates"][number],
    "id" | "probability" | "selectable" | "reasons"
  >[];
}

/** Dependencies of a decision. */
export interface RouteDeps {
  readonly rollouts: Rollouts;
  readonly routes: Routes;
  readonly isResting: (upstream: string) => boolean;
  readonly redact: RedactOptions;
  /** Returns the vectors of a prompt, for the router. */
  readonly embed?: ((prompt: string) => Promise<PromptVectors | undefined>) | undefined;
}

export async function decideRoute(
  { rollouts, routes, isResting, redact, embed }: RouteDeps,
  /** The body as text. */
  text: string,
  { within }: { within: string | undefined },
): Promise<RouteReply> {
  const body = parseText(text);
  const { request, fields } = read(redactValue(body as Json, redact));
  const requestBytes = Buffer.byteLength(asChatRequest(text, body));
  if (!routes.isAlias(request.model)) throw notAnAlias(request.model, routes);
  const vectors = await embed?.(promptOfMessages(request.messages));
  const decide = (rollout: Id) => {
    const at = { rollout, call: 0, requestBytes, failed: NONE, isResting, fields, vectors };
    const { decided, context } = routes.choose(request.model, request, at)!;
    const { call: _, ...step } = stepOf(decided);
    return { step, family: decided.family, prompt: context.prompt };
  };
  const { id, decided } = await rollouts.decide(decide, within);
  const { revision, policy, candidates, chosen, reason, relaxed, confidence } = decided.step;
  const { id: model, probability } = candidates[chosen]!;
  return {
    ...{
      id,
      model,
      probability,
      reason,
      relaxed,
      confidence,
      family: decided.family,
      router: revision,
      policy,
    },
    candidates: candidates.map(({ id: each, probability: its, selectable, reasons }) => ({
      ...{ id: each, probability: its, selectable, reasons },
    })),
  };
}

const NONE: ReadonlySet<string> = new Set();

/** Reads a chat request with `messages`, or one `prompt`. `context` holds additional facts for the router. */
function read(body: Json): { request: RequestFacts; fields: DecisionContext["fields"] | undefined } {
  const { prompt, context, ...rest } = isObject(body) ? body : {};
  requireKnownKeys(Object.keys(rest));
  if ((prompt === undefined) === (rest.messages === undefined))
    throw new HttpRefusal(400, "bad-request", "name either messages or prompt.");
  const { prompt: text, context: fields } = check(routeContext, { prompt, context });
  const messages = text === undefined ? rest.messages : messagesOf(text);
  const chat = { ...rest, messages };
  const request = openAiChat.readRequest(chat);
  if (request === undefined) throw new HttpRefusal(400, "bad-request", `${requestFaults(openAiChat, chat)}.`);
  return { request, fields };
}

/** Refuses a field with nearly the name of a known one. Other fields are those of a model server. */
function requireKnownKeys(keys: readonly string[]): void {
  for (const key of keys) {
    if (KNOWN_KEYS.includes(key)) continue;
    const meant = nearestName(key, KNOWN_KEYS);
    if (meant !== undefined)
      throw new HttpRefusal(400, "bad-request", `unknown field ${key.slice(0, 80)}. Did you mean ${meant}?`);
  }
}

/** Fields of this path and of chat requests. */
const KNOWN_KEYS: readonly string[] = [
  ...["model", "prompt", "messages", "context", "tools", "tool_choice", "parallel_tool_calls"],
  ...["stream", "stream_options", "response_format", "functions", "function_call", "logprobs"],
  ...["top_logprobs", "reasoning_effort", "verbosity", "modalities", "audio", "prediction", "store"],
  ...["metadata", "user", "safety_identifier", "prompt_cache_key", "service_tier", "models"],
  ...["web_search_options", ...openAiChat.samplingFields],
];

/** The chat request with which a client would call the model. The router sees its length, as it does for a call, so a
 *  request has the same features in every form. */
function asChatRequest(text: string, { prompt }: JsonObject): string {
  const asked = prompt === undefined ? {} : { prompt: undefined, messages: messagesOf(prompt) };
  return spliceFields(text, { context: undefined, ...asked });
}

function messagesOf(prompt: unknown): readonly object[] {
  return [{ role: "user", content: prompt }];
}

function notAnAlias(model: string, { aliases }: Routes): HttpRefusal {
  const known = aliases.length === 0 ? "none is configured" : aliases.slice(0, 20).join(", ");
  return new HttpRefusal(
    404,
    "model_not_found",
    `${JSON.stringify(model.slice(0, 80))} is not an alias, so there is nothing to decide; aliases: ${known}.`,
  );
}

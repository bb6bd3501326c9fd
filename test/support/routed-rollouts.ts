/** Rollouts through the real gateway. A plan fixes each one: the candidate that the router draws, the upstream's
 *  answer, the ending, and the grade with its time. In: a book's directory, the revisions that serve, plans. Out:
 *  sealed rollouts in the book. The router draws `large` with probability 3/4; a plan gives the result of the draw.
 *  `large` gives exact tokens, `small` gives none. The clock stands still, so the same plans leave the same log. */
import { manualClock } from "../../src/base/clock.ts";
import { parseId } from "../../src/base/ids.ts";
import { rngFrom } from "../../src/base/rng.ts";
import {
  type Choose,
  checkGatewayConfig,
  type Gateway,
  type LocalUpstream,
  openGateway,
} from "../../src/collect/gateway/index.ts";
import {
  type Ending,
  encodeWire,
  newKeyPem,
  PolicyRevision,
  signerFromPem,
} from "../../src/contract/index.ts";
import { openBook } from "../../src/store/index.ts";
import { makeRevision, weightsOf } from "./shelf.ts";

export const CANDIDATES = ["large", "small"] as const;
export type CandidateName = (typeof CANDIDATES)[number];
/** Propensity that the router logs for each candidate while both can be chosen. */
export const PROPENSITY: Readonly<Record<CandidateName, number>> = { large: 0.75, small: 0.25 };
/** The name of the outcome, as score and as feedback. */
export const OUTCOME = "solved";

export interface PlannedRollout {
  readonly id: string;
  /** Default: its own task, named like the rollout. */
  readonly task?: string;
  readonly draw: CandidateName;
  /** Number of calls; default 1. */
  readonly calls?: number;
  /** The outcome, given as a score when the rollout closes. */
  readonly score?: number;
  /** The outcome, sent to the gateway after the rollout is sealed. */
  readonly feedback?: number;
  /** Default: the ending that follows from the last reply. */
  readonly ending?: Ending;
  /** `fails`: both models answer 500. `overclaims`: more token ids than the usage counts. */
  readonly upstream?: "fails" | "overclaims";
}

/** Numbers of the revision that routes, and of the revision that answers as `large`. */
export interface Serving {
  readonly router: number;
  readonly writer: number;
}

export const revisionId = (family: "router" | "writer", number: number) => `${family}-r${number}`;

/** The record of a numbered revision in the exchange form, for `artifact import`, because the gateway logs only
 *  names. */
export function numberedRevision(family: "router" | "writer", number: number): object {
  const record = makeRevision(revisionId(family, number), {
    family: parseId(family),
    number: BigInt(number),
  });
  return encodeWire(PolicyRevision, record.record) as object;
}

export async function collectRollouts(
  root: string,
  serving: Serving,
  plans: readonly PlannedRollout[],
): Promise<void> {
  const clock = manualClock(1000);
  const book = await openBook(root, { clock });
  const gateway = await openGateway({
    ...{ book, clock, env: {}, rng: rngFrom(1), newId: () => "r-unnamed" },
    config: checkGatewayConfig({
      listen: { port: 0 },
      upstreams: { models: { baseUrl: "local:models", retries: 0 } },
      models: {
        large: {
          ...{ upstream: "models", capture: { tokens: "vllm" }, logprobKind: "sampling" },
          ...{ family: "writer", revision: keyOf("writer", serving.writer) },
        },
        small: { upstream: "models" },
      },
      routes: { auto: [...CANDIDATES] },
    }),
    signer: signerFromPem(newKeyPem()),
    choose: chooseAsPlanned(plans, serving),
    local: { models: answerAsPlanned(plans) },
  });
  try {
    for (let from = 0; from < plans.length; from += AT_ONCE)
      await Promise.all(plans.slice(from, from + AT_ONCE).map((plan, i) => playOut(gateway, plan, from + i)));
  } finally {
    await gateway.close();
    await book.close();
  }
}

const AT_ONCE = 16;
const PROMPT = "Add two and three.";

function keyOf(family: "router" | "writer", number: number) {
  const id = parseId(revisionId(family, number));
  return { id, digest: weightsOf(id) };
}

/** Chooses by the plan whose index is the request's seed. A failover has one candidate left, with probability 1. */
function chooseAsPlanned(plans: readonly PlannedRollout[], { router }: Serving): Choose {
  return ({ candidates, seed }) => {
    const open = candidates.filter(({ selectable }) => selectable);
    const name = open.length === 1 ? open[0]!.id : plans[seed!]!.draw;
    return {
      decision: {
        chosen: candidates.findIndex(({ id }) => id === name),
        probabilities: candidates.map(({ id, selectable }) =>
          open.length > 1 ? PROPENSITY[id as CandidateName] : selectable ? 1 : 0,
        ),
        reason: open.length > 1 ? "policy" : "only-candidate",
        confidence: null,
      },
      family: "router",
      revision: keyOf("router", router),
    };
  };
}

/** Answers with two tokens and a usage of two. An upstream that overclaims has a usage of one. */
function answerAsPlanned(plans: readonly PlannedRollout[]): LocalUpstream {
  return async (request) => {
    const { model, seed } = (await request.json()) as { model: string; seed: number };
    const { upstream } = plans[seed]!;
    if (upstream === "fails") return Response.json({ error: { message: "overloaded" } }, { status: 500 });
    const counted = upstream === "overclaims" ? 1 : 2;
    const tokens = {
      token_ids: [3, 4],
      logprobs: { content: [3, 4].map((id) => ({ token: String(id), logprob: -0.5 })) },
    };
    const reply = { index: 0, message: { role: "assistant", content: "5" }, finish_reason: "stop" };
    return Response.json({
      ...{ id: "c", object: "chat.completion", created: 1, model },
      ...(model === "large" ? { prompt_token_ids: [1, 2] } : {}),
      choices: [{ ...reply, ...(model === "large" ? tokens : {}) }],
      usage: { prompt_tokens: 2, completion_tokens: counted, total_tokens: 2 + counted },
    });
  };
}

async function playOut({ url }: Gateway, plan: PlannedRollout, seed: number): Promise<void> {
  const { id, task = id, calls = 1, score, feedback, ending, upstream } = plan;
  const { apiKey } = (await post(`${url}/v1/rollouts`, { id, task: { id: task }, seed }, 201)) as {
    apiKey: string;
  };
  for (let call = 0; call < calls; call++)
    await post(
      `${url}/v1/chat/completions`,
      { model: "auto", seed, messages: [{ role: "user", content: PROMPT }] },
      upstream === "fails" ? 500 : 200,
      { authorization: `Bearer ${apiKey}` },
    );
  await post(
    `${url}/v1/rollouts/${id}/close`,
    {
      ...(ending === undefined ? {} : { ending }),
      ...(score === undefined ? {} : { scores: [{ name: OUTCOME, value: score }] }),
    },
    200,
  );
  if (feedback !== undefined)
    await post(
      `${url}/v1/feedback`,
      { rollout: id, name: OUTCOME, value: feedback, idempotencyKey: id },
      200,
    );
}

async function post(
  url: string,
  body: object,
  expected: number,
  headers: Record<string, string> = {},
): Promise<unknown> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status !== expected)
    throw new Error(`${url}: ${response.status} instead of ${expected}: ${text}`);
  return JSON.parse(text);
}

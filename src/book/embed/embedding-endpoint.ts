/** Requests vectors from an endpoint with the OpenAI `/v1/embeddings` interface.
 *  In: texts. Out: one vector per text, all of one length. Retries if the endpoint is busy or unreachable. Caches
 *  nothing. */
import { setTimeout as sleep } from "node:timers/promises";
import { isRollbookError, RollbookError, reasonOf } from "../../base/index.ts";
import { isProviderFault } from "../../collect/index.ts";

interface EmbeddingEndpoint {
  /** URL with or without the final `/embeddings`. */
  readonly url: string;
  readonly model: string;
  /** Sent as a bearer token. */
  readonly key?: string | undefined;
}

/** Number of tries, and the time limits. */
interface EmbeddingPatience {
  readonly tries: number;
  /** Timeout of one try. */
  readonly timeoutMs: number;
  /** Aborts the wait early. */
  readonly signal?: AbortSignal | undefined;
}

const BATCH = 64;
const FIRST_WAIT_MS = 250;
const MOST_WAIT_MS = 30_000;
/** Defaults for commands: no live request is waiting, and a run that stops must start again. */
const OFFLINE: EmbeddingPatience = { tries: 4, timeoutMs: 60_000 };

export async function askEmbeddings(
  endpoint: EmbeddingEndpoint,
  texts: readonly string[],
  patience = OFFLINE,
): Promise<Float32Array[]> {
  const vectors: Float32Array[] = [];
  for (let at = 0; at < texts.length; at += BATCH) {
    const reply = await post(endpoint, texts.slice(at, at + BATCH), patience);
    vectors.push(...vectorsOf(endpoint, reply, Math.min(BATCH, texts.length - at)));
  }
  const size = vectors[0]?.length;
  if (vectors.some(({ length }) => length !== size))
    throw badReply(endpoint, "its vectors have different lengths");
  return vectors;
}

/** True if the endpoint itself fails, not only this text. */
export function isEndpointAway(error: unknown): boolean {
  if (isRollbookError(error, "embeddings-away")) return true;
  return isRollbookError(error, "embeddings-refused") && isProviderFault(Number(error.fields.status));
}

function embeddingsUrl(url: string): string {
  const trimmed = url.replace(/\/+$/, "");
  return trimmed.endsWith("/embeddings") ? trimmed : `${trimmed}/embeddings`;
}

/** Reply that was read completely: an endpoint may stop sending in the middle of one. */
interface EmbeddingReply {
  readonly status: number;
  readonly text: string;
  readonly retryAfterMs: number;
}

async function post(
  endpoint: EmbeddingEndpoint,
  input: readonly string[],
  { tries, timeoutMs, signal }: EmbeddingPatience,
): Promise<unknown> {
  for (let tried = 1; ; tried++) {
    const late = AbortSignal.timeout(timeoutMs);
    const answer = await postOnce(
      endpoint,
      input,
      signal === undefined ? late : AbortSignal.any([late, signal]),
    ).catch((cause: unknown) => cause as Error);
    if (!(answer instanceof Error) && answer.status < 300) return parsed(answer.text);
    const mayHelp = answer instanceof Error || isProviderFault(answer.status);
    if (!mayHelp || tried === tries) throw refusalOf(endpoint, answer);
    const asked = answer instanceof Error ? 0 : answer.retryAfterMs;
    await sleep(Math.min(MOST_WAIT_MS, Math.max(asked, FIRST_WAIT_MS * 2 ** (tried - 1))));
  }
}

async function postOnce(
  { url, model, key }: EmbeddingEndpoint,
  input: readonly string[],
  signal: AbortSignal,
): Promise<EmbeddingReply> {
  const answer = await fetch(embeddingsUrl(url), {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(key === undefined || key === "" ? {} : { authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify({ model, input, encoding_format: "float" }),
    signal,
  });
  const retryAfterMs = 1000 * Number(answer.headers.get("retry-after")) || 0;
  return { status: answer.status, text: await answer.text(), retryAfterMs };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // reported as a reply without vectors
  }
}

function refusalOf({ url, model }: EmbeddingEndpoint, answer: EmbeddingReply | Error): RollbookError {
  const where = embeddingsUrl(url);
  if (answer instanceof Error)
    return new RollbookError(
      "embeddings-away",
      { url: where },
      `the embeddings endpoint ${where} cannot be reached: ${reasonOf(answer)}. Start it, or correct the address.`,
      { cause: answer },
    );
  return new RollbookError(
    "embeddings-refused",
    { url: where, status: answer.status, model },
    `the embeddings endpoint ${where} refused ${model}: ${answer.status} ${answer.text.slice(0, 300)}. Check the model and the key in ROLLBOOK_EMBEDDINGS_KEY.`,
  );
}

/** `data` may come in any order; `index` is the position of its text. */
function vectorsOf(endpoint: EmbeddingEndpoint, reply: unknown, count: number): Float32Array[] {
  const data = (reply as { data?: unknown } | undefined)?.data;
  if (!Array.isArray(data) || data.length !== count)
    throw badReply(
      endpoint,
      `it holds ${Array.isArray(data) ? data.length : "no"} vectors for ${count} texts`,
    );
  const vectors = new Array<Float32Array | undefined>(count);
  for (const [i, each] of data.entries()) {
    const { index = i, embedding } = each as { index?: number; embedding?: unknown };
    const isVector = Array.isArray(embedding) && embedding.length > 0 && embedding.every(Number.isFinite);
    if (!isVector) throw badReply(endpoint, `vector ${i} is not a list of numbers`);
    vectors[index] = Float32Array.from(embedding as number[]);
  }
  if (vectors.length !== count || vectors.includes(undefined))
    throw badReply(endpoint, "its indices do not name every text once");
  return vectors as Float32Array[];
}

function badReply({ url }: EmbeddingEndpoint, what: string): RollbookError {
  const where = embeddingsUrl(url);
  return new RollbookError(
    "bad-embedding",
    { url: where },
    `the reply of ${where} is not a list of embeddings: ${what}. The endpoint must answer as OpenAI's /v1/embeddings does.`,
  );
}

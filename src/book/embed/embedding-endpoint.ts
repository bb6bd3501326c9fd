/** Asks an endpoint of the OpenAI `/v1/embeddings` shape for vectors.
 *  In: texts. Out: one vector each, all of one length. Tries again where the endpoint is busy or away. Caches nothing. */
import { setTimeout as sleep } from "node:timers/promises";
import { RollbookError, reasonOf } from "../../base/index.ts";

export interface EmbeddingEndpoint {
  /** With or without the `/embeddings` at its end. */
  readonly url: string;
  readonly model: string;
  /** Sent as a bearer token. */
  readonly key?: string | undefined;
}

const BATCH = 64;
const TRIES = 4;
const FIRST_WAIT_MS = 250;
const MOST_WAIT_MS = 30_000;
const TIMEOUT_MS = 60_000;

export async function askEmbeddings(
  endpoint: EmbeddingEndpoint,
  texts: readonly string[],
): Promise<Float32Array[]> {
  const vectors: Float32Array[] = [];
  for (let at = 0; at < texts.length; at += BATCH) {
    const reply = await post(endpoint, texts.slice(at, at + BATCH));
    vectors.push(...vectorsOf(endpoint, reply, Math.min(BATCH, texts.length - at)));
  }
  const size = vectors[0]?.length;
  if (vectors.some(({ length }) => length !== size))
    throw badReply(endpoint, "its vectors have different lengths");
  return vectors;
}

export function embeddingsUrl(url: string): string {
  const trimmed = url.replace(/\/+$/, "");
  return trimmed.endsWith("/embeddings") ? trimmed : `${trimmed}/embeddings`;
}

async function post(endpoint: EmbeddingEndpoint, input: readonly string[]): Promise<unknown> {
  const { url, model, key } = endpoint;
  for (let tried = 1; ; tried++) {
    const answer = await fetch(embeddingsUrl(url), {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(key === undefined || key === "" ? {} : { authorization: `Bearer ${key}` }),
      },
      body: JSON.stringify({ model, input, encoding_format: "float" }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).catch((cause: unknown) => cause as Error);
    if (answer instanceof Response && answer.ok) return answer.json().catch(() => undefined);
    const isBusy = answer instanceof Error || answer.status === 429 || answer.status >= 500;
    if (!isBusy || tried === TRIES) throw await refusalOf(endpoint, answer);
    const asked = answer instanceof Response ? 1000 * Number(answer.headers.get("retry-after")) : 0;
    await sleep(Math.min(MOST_WAIT_MS, Math.max(asked || 0, FIRST_WAIT_MS * 2 ** (tried - 1))));
  }
}

async function refusalOf(
  { url, model }: EmbeddingEndpoint,
  answer: Response | Error,
): Promise<RollbookError> {
  const where = embeddingsUrl(url);
  if (answer instanceof Error)
    return new RollbookError(
      "embeddings-away",
      { url: where },
      `the embeddings endpoint ${where} cannot be reached: ${reasonOf(answer)}. Start it, or correct the address.`,
      { cause: answer },
    );
  const said = (await answer.text().catch(() => "")).slice(0, 300);
  return new RollbookError(
    "embeddings-refused",
    { url: where, status: answer.status, model },
    `the embeddings endpoint ${where} refused ${model}: ${answer.status} ${said}. Check the model and the key in ROLLBOOK_EMBEDDINGS_KEY.`,
  );
}

/** `data` may come in any order; `index` says which text each belongs to. */
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
    `the reply of ${where} is no list of embeddings: ${what}. The endpoint must answer as OpenAI's /v1/embeddings does.`,
  );
}

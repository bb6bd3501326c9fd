/** Adds an outcome to a rollout, or to one of its calls, at any later time.
 *  In: an open book, or the address of a running gateway, and the outcome. Out: `added`, true if the outcome was new.
 *  The same key again changes nothing. Admission decides which feedback counts. */
import { type Digest, parseId, RollbookError, reasonOf } from "../../base/index.ts";
import {
  checkGatewayBook,
  type GatewayPlace,
  gatewayBook,
  gatewayUrls,
} from "../../collect/rollout/index.ts";
import { Feedback, RolloutContent, seal } from "../../contract/index.ts";
import { makeSealer, readRecord } from "../../store/index.ts";
import { callIn, type OpenBook, resolveCall } from "../open/index.ts";

interface FeedbackRequest {
  /** Rollout id, or `<rollout>.<number>` for one of its calls; in a book also the first digits of a digest. */
  readonly rollout: string;
  readonly name: string;
  readonly value: number;
  /** Index of the call in the rollout, from 0 (default: the whole rollout). */
  readonly call?: number | undefined;
  /** Idempotency key: the same key counts once (default: the name). */
  readonly key?: string | undefined;
  /** Author of the feedback (default: feedback). */
  readonly source?: string | undefined;
}

interface FeedbackAdded {
  /** False if the feedback already exists. */
  readonly added: boolean;
  /** Digest of the feedback record; a gateway does not return it. */
  readonly feedback?: Digest;
}

export async function addFeedback(book: OpenBook, request: FeedbackRequest): Promise<FeedbackAdded> {
  const { name, value, key, source } = outcomeOf(request);
  const { store, clock, signer } = book;
  const index = await book.index();
  const { artifact, call: named } = resolveCall(index, request.rollout, {
    wholeId: true,
    also: "`rollbook feedback --gateway URL` also takes open ones.",
  });
  const { content } = artifact;
  const call = named === undefined ? request.call : agreedCall(request, named);
  const { calls } = await readRecord(store, RolloutContent, content.digest);
  if (call !== undefined && call >= calls.length)
    throw new RollbookError(
      "unknown-call",
      { rollout: content.id, call, calls: calls.length },
      calls.length === 0
        ? `${content.id} has no recorded calls. Leave out ${named === undefined ? "--call" : `.${call}`} to rate the whole rollout.`
        : `${content.id} has no call ${call}: it has ${calls.length}, numbered from 0.`,
    );
  const known = index
    .ofKind(Feedback.kind)
    .find(
      ({ fields }) =>
        fields.subject === content.digest &&
        fields.name === name &&
        fields.idempotencyKey === key &&
        fields.call === call,
    );
  if (known !== undefined) {
    if (known.fields.value === value) return { added: false, feedback: known.digest };
    throw new RollbookError(
      "key-reused",
      { rollout: content.id, name, key, value: known.fields.value },
      `${content.id} already has the outcome ${name} = ${known.fields.value} (key ${JSON.stringify(key)}). The value ${value} was not stored. To add a second outcome, give another --key.`,
    );
  }
  const record = seal(Feedback, {
    ...{ subject: content.digest, name, value, source, idempotencyKey: key, atMs: clock.nowMs() },
    ...(call === undefined ? {} : { call }),
  });
  await makeSealer(store, signer).add({ envelope: record, blobs: [record] });
  return { added: true, feedback: record.digest };
}

/** Sends feedback to a gateway, where the rollout may still be open. `book`: refuses a gateway on another book, where
 *  the same name can belong to another rollout (default: not compared, because the book may be on another machine). */
export async function sendFeedback(
  place: GatewayPlace,
  request: FeedbackRequest,
  { book }: { book?: Parameters<typeof checkGatewayBook>[1] } = {},
): Promise<FeedbackAdded> {
  if (book !== undefined) await checkGatewayBook(place, book);
  const { rollout, call } = request;
  const answer = await post(place, request, { rollout, call });
  const named = callIn(rollout);
  // Only the gateway knows if a rollout has exactly this name. If not, the name is read as the name of a call.
  const last =
    named !== undefined && answer.refusal === "unknown-rollout"
      ? await post(place, request, { rollout: named.rollout, call: agreedCall(request, named.call) })
      : answer;
  if (last.refusal === "unknown-rollout") throw await notThere(place, rollout);
  return resultOf(last);
}

/** The rollout is in another book, or nowhere. */
async function notThere(place: GatewayPlace, rollout: string): Promise<RollbookError> {
  const [url] = gatewayUrls(place);
  // A gateway of an earlier version does not name its book. The refusal is the same.
  const root = await gatewayBook(place).then(
    (book) => `, which writes to the book ${book.root},`,
    () => "",
  );
  return new RollbookError(
    "unknown-rollout",
    { url, rollout },
    `the gateway at ${url}${root} has no rollout ${rollout}. Check the whole id. If the rollout is sealed in another book, leave --gateway out and name that book with --book.`,
  );
}

interface GatewayAnswer {
  readonly url: string;
  readonly status: number;
  readonly text: string;
  readonly refusal: string | null;
}

async function post(
  place: GatewayPlace,
  request: FeedbackRequest,
  { rollout, call }: { rollout: string; call: number | undefined },
): Promise<GatewayAnswer> {
  const { name, value, key: idempotencyKey, source } = outcomeOf(request);
  const url = `${gatewayUrls(place)[0]}/v1/feedback`;
  const subject = call === undefined ? { rollout } : { call: `${encodeURIComponent(rollout)}.${call}` };
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(place.token === undefined ? {} : { authorization: `Bearer ${place.token}` }),
    },
    body: JSON.stringify({ ...subject, name, value, source, idempotencyKey }),
  }).catch((cause: unknown) => {
    throw new RollbookError(
      "gateway-away",
      { url },
      `the gateway at ${url} cannot be reached: ${reasonOf(cause)}. Start it, or leave --gateway out for sealed rollouts.`,
      { cause },
    );
  });
  const { status, headers } = response;
  return { url, status, text: await response.text(), refusal: headers.get("x-rollbook-refusal") };
}

function resultOf({ url, status, text }: GatewayAnswer): FeedbackAdded {
  if (status >= 200 && status < 300) return JSON.parse(text) as FeedbackAdded;
  throw new RollbookError(
    "gateway-refused",
    { url, status },
    `the gateway refused the outcome: ${status} ${text.slice(0, 500)}`,
  );
}

/** Call given by the name; throws if --call gives another. */
function agreedCall({ rollout, call }: FeedbackRequest, named: number): number {
  if (call === undefined || call === named) return named;
  throw new RollbookError(
    "wrong-usage",
    { rollout, call },
    `${rollout} names call ${named}, and --call names call ${call}. Remove one of them.`,
  );
}

function outcomeOf({ name, value, key = name, source = "feedback" }: FeedbackRequest) {
  return { name: parseId(name, "--name"), value, key, source };
}

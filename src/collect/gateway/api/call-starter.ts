/** Starts model calls. In: a request with its complete body, and its caller. Out: a call in progress, or a thrown
 *  refusal. A refusal happens before anything is sent or recorded. If the router reads prompt vectors, a routed call
 *  first waits for them. */
import type { Json } from "../../../base/index.ts";
import { type PromptVectors, promptOfMessages } from "../../../policy/index.ts";
import { type CallContext, ModelCall, reservationUsd } from "../call/index.ts";
import { type Dialect, otherVendor, type RequestFacts, requestFaults } from "../dialects/index.ts";
import { type RedactOptions, redactValue } from "../redact/index.ts";
import { cannotRecord, HttpRefusal, parseText, type ReplySink, textOfBody } from "../wire/index.ts";
import { type ApiPath, upstreamPath } from "./api-path.ts";
import type { Caller } from "./identity.ts";
import { refuseSecrets } from "./redact-requests.ts";

/** Limit of a name in a record. */
const MAX_NAME = 512;

interface AskedCall {
  readonly dialect: Dialect;
  readonly path: ApiPath;
  readonly caller: Caller;
  readonly body: Buffer;
  readonly rawHeaders: readonly string[];
  readonly response: ReplySink;
}

/** Undefined once the call is in progress. A promise if the call must wait; it rejects if the call does not start. */
export type StartCall = (asked: AskedCall) => Promise<void> | undefined;

export function callStarter(
  context: CallContext,
  {
    redact,
    embed,
  }: {
    redact: RedactOptions;
    embed: ((prompt: string) => Promise<PromptVectors | undefined>) | undefined;
  },
): StartCall {
  const { routes, rollouts, journal } = context;
  return ({ dialect, path, caller, body, rawHeaders, response }) => {
    const text = textOfBody(body);
    const request = readRequest(dialect, path, text);
    // An unknown model name is the client's own text and will be recorded, so it must hold no secret.
    if (!routes.isFamiliar(request.model)) refuseSecrets({ model: request.model }, redact);
    const speaks = routes.vendorOf(request.model);
    if (speaks !== undefined && speaks !== dialect.vendor)
      throw new HttpRefusal(
        400,
        "wrong-dialect",
        otherVendor(request.model, { speaks, asked: dialect.vendor }),
      );
    // The embedding endpoint gets the redacted prompt: the text that is recorded and used for training.
    const prompt =
      embed === undefined || !routes.isAlias(request.model)
        ? undefined
        : promptOfMessages(redactValue(request.messages as Json[], redact) as Json[]);
    // A reply that cannot be recorded would be paid for and not delivered.
    if (journal.hasFailed) throw cannotRecord();
    const mayCostUsd = () =>
      reservationUsd(request, { bodyBytes: body.length, price: routes.dearest(request.model) });
    const rollout =
      caller.rollout === undefined
        ? rollouts.openSingle(mayCostUsd)
        : rollouts.enter(caller.rollout, mayCostUsd);
    const incoming = { dialect, body, rawHeaders, path: upstreamPath(path), rollout, response };
    const call = new ModelCall(incoming, context);
    if (embed === undefined || prompt === undefined) {
      call.start(request, text);
      return undefined;
    }
    const start = (vectors: PromptVectors | undefined) =>
      response.destroyed ? call.leave() : call.start(request, text, vectors);
    const leave = (error: unknown) => {
      call.leave();
      throw error;
    };
    return embed(prompt).then(start, leave);
  };
}

function readRequest(dialect: Dialect, { path }: ApiPath, text: string): RequestFacts {
  const body = parseText(text);
  const request = dialect.readRequest(body);
  if (request === undefined)
    throw new HttpRefusal(
      400,
      "bad-request",
      `the body is not a request of ${path}: ${requestFaults(dialect, body)}.`,
    );
  if (request.model.length > MAX_NAME)
    throw new HttpRefusal(400, "name-too-long", `the model's name is longer than ${MAX_NAME} characters.`);
  return request;
}

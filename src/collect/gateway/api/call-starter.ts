/** Starts model calls. In: a request whose body is whole, and who asks. Out: a call under way, or a refusal that is thrown
 *  before anything is sent or recorded. A routed call first waits for the vectors of its prompt, where the router reads them. */
import type { Json } from "../../../base/index.ts";
import { type PromptVectors, promptOfMessages } from "../../../policy/index.ts";
import { type CallContext, ModelCall, reservationUsd } from "../call/index.ts";
import type { Dialect, RequestFacts } from "../dialects/index.ts";
import { type RedactOptions, redactValue } from "../redact/index.ts";
import { cannotRecord, HttpRefusal, parseBody, type ReplySink } from "../wire/index.ts";
import { type ApiPath, upstreamPath } from "./api-path.ts";
import type { Caller } from "./identity.ts";
import { refuseSecrets } from "./redact-requests.ts";

/** As long as a record takes it. */
const MAX_NAME = 512;

interface AskedCall {
  readonly dialect: Dialect;
  readonly path: ApiPath;
  readonly caller: Caller;
  readonly body: Buffer;
  readonly rawHeaders: readonly string[];
  readonly response: ReplySink;
}

/** Undefined once the call is under way; a promise where it waits, rejected where it does not begin. */
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
    const request = readRequest(dialect, path, body);
    // A name that was not heard before is the client's own words, and is recorded.
    if (!routes.isFamiliar(request.model)) refuseSecrets({ model: request.model }, redact);
    // The endpoint sees what is recorded, and what policies are trained on: no secrets.
    const prompt =
      embed === undefined || !routes.isAlias(request.model)
        ? undefined
        : promptOfMessages(redactValue(request.messages as Json[], redact) as Json[]);
    // A reply that could not be recorded would be paid for and not delivered.
    if (journal.hasFailed) throw cannotRecord();
    const mayCostUsd = () =>
      reservationUsd(request, { bodyBytes: body.length, price: routes.dearest(request.model) });
    const rollout =
      caller.rollout === undefined ? rollouts.openSingle() : rollouts.enter(caller.rollout, mayCostUsd);
    const incoming = { dialect, body, rawHeaders, path: upstreamPath(path), rollout, response };
    const call = new ModelCall(incoming, context);
    if (embed === undefined || prompt === undefined) {
      call.start(request);
      return undefined;
    }
    const start = (vectors: PromptVectors | undefined) =>
      response.destroyed ? call.leave() : call.start(request, vectors);
    const leave = (error: unknown) => {
      call.leave();
      throw error;
    };
    return embed(prompt).then(start, leave);
  };
}

function readRequest(dialect: Dialect, { path }: ApiPath, body: Buffer): RequestFacts {
  const request = dialect.readRequest(parseBody(body));
  if (request === undefined)
    throw new HttpRefusal(
      400,
      "bad-request",
      `the body is not a request of ${path}: model or messages are missing.`,
    );
  if (request.model.length > MAX_NAME)
    throw new HttpRefusal(400, "name-too-long", `the model's name is longer than ${MAX_NAME} characters.`);
  return request;
}

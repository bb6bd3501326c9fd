/** Attributes a broken rollout to an owner. In: the thrown value. Out: a typed ending.
 *  An error is the agent's failure unless an error of this package names another owner. */
import { isObject, RollbookError, reasonOf } from "../../../base/index.ts";
import type { Ending, EndingLimit, FailureOwner } from "../../../contract/index.ts";
import { isGatewayAway, isProviderFault, limitOfReply } from "../../gateway-replies.ts";

// The type makes each list complete. Schemas are not used here, because the process of an agent does not load them.
const OWNERS = namesOf<FailureOwner>({ agent: 1, task: 1, provider: 1, sandbox: 1, infrastructure: 1 });
const LIMITS = namesOf<EndingLimit>({ turns: 1, tokens: 1, time: 1, budget: 1 });
const MAX_MESSAGE = 4096;

/** For an agent that knows the owner of a failure: `throw failedBy("provider", "the model is gone")`. */
export function failedBy(owner: FailureOwner, message: string, options?: ErrorOptions): RollbookError {
  return new RollbookError(`failed-${owner}`, { owner }, message, options);
}

/** Makes the error for an agent that reached a limit. The rollout is then truncated, not failed. */
export function cutBy(limit: EndingLimit, message = `the limit of ${limit} is reached`): RollbookError {
  return new RollbookError(`limit-${limit}`, { limit }, message);
}

/** The first error in the chain of causes that names an owner or a limit decides. Otherwise the agent failed. */
export function endingOfError(error: unknown): Ending {
  try {
    return namedEnding(error) ?? failure("agent", reasonOf(error));
  } catch {
    // An agent may throw any value, for example a proxy or an object with a getter that throws.
    return failure("agent", "it threw a value that cannot be read");
  }
}

/** True if a `failedBy` names the owner. False if the owner was inferred from a reply or a sandbox error. */
export function isNamedByThrower(error: unknown): boolean {
  try {
    const naming = [...causesOf(error)].find((each) => endingOf(each, "") !== undefined);
    return naming !== undefined && codeOf(naming)?.startsWith("failed-") === true;
  } catch {
    return false;
  }
}

/** Reads an ending that an error can have from JSON. Undefined for any other value. */
export function endingIn(value: unknown): Ending | undefined {
  if (!isObject(value)) return undefined;
  const owner = OWNERS.find((each) => each === value.owner);
  if (value.kind === "failed" && owner !== undefined) return failure(owner, String(value.message));
  const limit = LIMITS.find((each) => each === value.limit);
  return value.kind === "truncated" && limit !== undefined ? { kind: "truncated", limit } : undefined;
}

/** Undefined if no error in the chain of causes names an owner. */
export function namedEnding(error: unknown): Ending | undefined {
  for (const each of causesOf(error)) {
    const ending = endingOf(each, reasonOf(error));
    if (ending !== undefined) return ending;
  }
  return undefined;
}

/** Reads the ending from this error only, not from its causes. */
function endingOf(error: Error, message: string): Ending | undefined {
  const code = codeOf(error);
  return code === undefined ? endingOfReply(error as ReplyError, message) : endingOfCode(code, message);
}

/** Recognizes the error by its form, not by `instanceof`: the agent may load its own copy of this package. */
function codeOf(error: Error): string | undefined {
  const { code } = error as { code?: unknown };
  return error.name === "RollbookError" && typeof code === "string" ? code : undefined;
}

/** Fields of SDK errors that describe a reply: `openai`, `@anthropic-ai/sdk` and `ai`. */
interface ReplyError {
  readonly status?: number;
  readonly statusCode?: number;
  readonly code?: unknown;
  readonly headers?: unknown;
  readonly responseHeaders?: unknown;
  readonly responseBody?: unknown;
  readonly message: string;
  /** The `ai` package wraps the last error after its retries. */
  readonly lastError?: unknown;
}

/** Ending for a reply from our gateway that the agent did not handle. The gateway's caps are limits, and a failed
 *  upstream is the provider's failure. Replies of other servers belong to the agent. */
function endingOfReply(error: ReplyError, message: string): Ending | undefined {
  const status = error.status ?? error.statusCode;
  if (typeof status !== "number") return undefined;
  const headers = error.headers ?? error.responseHeaders;
  const refusal = headerIn(headers, "x-rollbook-refusal");
  if (isGatewayAway({ status, refusal })) return failure("infrastructure", message);
  const said = `${String(error.code)} ${String(error.responseBody)} ${error.message}`;
  const limit = limitOfReply({ status, refusal, said });
  if (limit !== undefined) return { kind: "truncated", limit };
  const isOurs = headerIn(headers, "x-rollbook-call") !== undefined;
  return isOurs && isProviderFault(status) ? failure("provider", message) : undefined;
}

function namesOf<Name extends string>(names: Readonly<Record<Name, 1>>): readonly Name[] {
  return Object.keys(names) as Name[];
}

function headerIn(headers: unknown, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  return isObject(headers) && Object.hasOwn(headers, name) ? String(headers[name]) : undefined;
}

/** Bounds the walk, because a chain of causes may contain a cycle. */
const MAX_CAUSES = 32;

function* causesOf(error: unknown): IterableIterator<Error> {
  let count = 0;
  for (
    let each: unknown = error;
    each instanceof Error;
    each = each.cause ?? (each as ReplyError).lastError
  ) {
    if (++count > MAX_CAUSES) return;
    yield each;
  }
}

export function failure(owner: FailureOwner, message: string): Ending {
  return { kind: "failed", owner, message: message.toWellFormed().slice(0, MAX_MESSAGE).toWellFormed() };
}

function endingOfCode(code: string, message: string): Ending | undefined {
  const owner = OWNERS.find((each) => code === `failed-${each}`);
  if (owner !== undefined) return failure(owner, message);
  const limit = LIMITS.find((each) => code === `limit-${each}`);
  if (limit !== undefined) return { kind: "truncated", limit };
  // The engines of this package throw only if the engine itself fails. A program's failure is data.
  return code.startsWith("sandbox-") ? failure("sandbox", message) : undefined;
}

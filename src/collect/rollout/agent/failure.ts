/** Who is to blame when a rollout breaks off. In: whatever was thrown. Out: a typed ending.
 *  An agent's error is the agent's unless somebody says otherwise, with an error of this package. */
import { isObject, RollbookError, reasonOf } from "../../../base/index.ts";
import type { Ending, EndingLimit, FailureOwner } from "../../../contract/index.ts";
import { isGatewayAway, isProviderFault, limitOfReply } from "../../gateway-replies.ts";

// Every name, by type: the process of an agent does not load the schemas.
const OWNERS = namesOf<FailureOwner>({ agent: 1, task: 1, provider: 1, sandbox: 1, infrastructure: 1 });
const LIMITS = namesOf<EndingLimit>({ turns: 1, tokens: 1, time: 1, budget: 1 });
const MAX_MESSAGE = 4096;

/** Thrown by an agent that knows whose fault it is: `throw failedBy("provider", "the model is gone")`. */
export function failedBy(owner: FailureOwner, message: string, options?: ErrorOptions): RollbookError {
  return new RollbookError(`failed-${owner}`, { owner }, message, options);
}

/** Thrown by an agent that ran into a limit: the rollout is truncated, which is no failure. */
export function cutBy(limit: EndingLimit, message = `the limit of ${limit} is reached`): RollbookError {
  return new RollbookError(`limit-${limit}`, { limit }, message);
}

/** The first error in the chain of causes that names an owner or a limit decides; else it is the agent's. */
export function endingOfError(error: unknown): Ending {
  try {
    return namedEnding(error) ?? failure("agent", reasonOf(error));
  } catch {
    // A proxy, a getter that throws: what an agent throws may be anything.
    return failure("agent", "it threw a value that cannot be read");
  }
}

/** Whether the owner is named by a `failedBy`, and not found in a reply or in a sandbox. */
export function isNamedByThrower(error: unknown): boolean {
  try {
    const naming = [...causesOf(error)].find((each) => endingOf(each, "") !== undefined);
    return naming !== undefined && codeOf(naming)?.startsWith("failed-") === true;
  } catch {
    return false;
  }
}

/** An ending that an error can have, from JSON; undefined for anything else. */
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

/** What this one error says, its causes aside. */
function endingOf(error: Error, message: string): Ending | undefined {
  const code = codeOf(error);
  return code === undefined ? endingOfReply(error as ReplyError, message) : endingOfCode(code, message);
}

/** By its form: the agent may have a copy of this package of its own. */
function codeOf(error: Error): string | undefined {
  const { code } = error as { code?: unknown };
  return error.name === "RollbookError" && typeof code === "string" ? code : undefined;
}

/** Errors of model SDKs, as far as they tell of a reply: `openai` and `@anthropic-ai/sdk`, and `ai`. */
interface ReplyError {
  readonly status?: number;
  readonly statusCode?: number;
  readonly code?: unknown;
  readonly headers?: unknown;
  readonly responseHeaders?: unknown;
  readonly responseBody?: unknown;
  readonly message: string;
  /** The `ai` package wraps what it has retried. */
  readonly lastError?: unknown;
}

/** A reply that came through our gateway and that the agent did not handle: its caps are limits, a failed upstream is
 *  the provider's. Replies of other servers are the agent's own business. */
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

/** A limit, because a chain of causes may lead back to itself. */
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
  // The engines of this package raise only when they broke themselves; a program's failure is data.
  return code.startsWith("sandbox-") ? failure("sandbox", message) : undefined;
}

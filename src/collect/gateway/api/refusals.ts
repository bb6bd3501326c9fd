/** Answers requests with refusals. In: the error thrown while a request was served. Out: an answer in the client's
 *  dialect, a count, and an event for a refused call. */
import { type Clock, given, isRollbookError, reasonOf } from "../../../base/index.ts";
import type { TellEvent } from "../call/index.ts";
import { dialectAt, openAiError } from "../dialects/index.ts";
import type { Metrics } from "../metrics.ts";
import { type RedactOptions, redactText } from "../redact/index.ts";
import type { Rollouts } from "../rollouts/index.ts";
import { cannotRecord, HttpRefusal, isDiskFailure, type ReplySink } from "../wire/index.ts";
import type { ApiPath } from "./api-path.ts";
import { sendJson } from "./control-api.ts";

interface RefuserOptions {
  readonly rollouts: Pick<Rollouts, "refused">;
  readonly redact: RedactOptions;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: (line: string) => void;
  readonly tell: TellEvent | undefined;
}

/** `rollout` of the request, if known. */
export type Refuse = (response: ReplySink, error: unknown, path: ApiPath, rollout?: string) => void;

export function refuser(options: RefuserOptions): Refuse {
  return (response, error, { path }, rollout) => {
    const refusal = refusalFor(error);
    const dialect = dialectAt(path);
    if (dialect !== undefined) tellRefusal(refusal, { path, rollout }, options);
    if (refusal !== error && refusal.status >= 500) options.log(`${path}: ${reasonOf(error)}`);
    options.metrics.count("rollbook_gateway_refusals_total", { code: refusal.code });
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const body = (dialect?.errorBody ?? openAiError)(refusal);
    // The rest of the request stays unread, so the connection cannot be reused.
    const isUnread = refusal.code === "too-large" || refusal.code === "too-much-in-flight";
    const headers = isUnread ? { connection: "close", ...refusal.headers } : refusal.headers;
    sendJson(response, refusal.status, body, headers);
  };
}

/** A refused call has no record. The event listener and the owner of its rollout receive it instead. */
function tellRefusal(
  { status, code, message: said }: HttpRefusal,
  { path, rollout }: { path: string; rollout: string | undefined },
  { redact, rollouts, clock, tell }: RefuserOptions,
): void {
  const message = redactText(said, redact);
  if (rollout !== undefined) rollouts.refused(rollout, `${status} ${message}`);
  tell?.({ kind: "refusal", atMs: clock.nowMs(), path, ...given({ rollout }), status, code, message });
}

function refusalFor(error: unknown): HttpRefusal {
  if (error instanceof HttpRefusal) return error;
  if (isRollbookError(error, "bad-id"))
    return new HttpRefusal(400, error.code, error.message, { cause: error });
  if (isDiskFailure(error)) return cannotRecord(error);
  // The router's constraints leave no candidate.
  if (isRollbookError(error, "no-candidate"))
    return new HttpRefusal(422, error.code, error.message, { cause: error });
  const said = "the gateway failed; its log says how.";
  return new HttpRefusal(500, "internal", said, { retry: true, cause: error });
}

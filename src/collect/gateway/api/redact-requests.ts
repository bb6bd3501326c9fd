/** Redacts the control requests of clients before they are recorded. In: a checked request. Out: the same request
 *  with its free text redacted. A name with a secret is refused, because a silently changed name would name
 *  something else. Pure, apart from the given hook. */
import type { z } from "zod";
import { REDACTED, type RedactOptions, redactValue } from "../redact/index.ts";
import { HttpRefusal } from "../wire/index.ts";
import type { closeRequest, feedbackRequest, openRequest } from "./requests.ts";

export function redactOpening(
  opening: z.output<typeof openRequest>,
  options: RedactOptions,
): z.output<typeof openRequest> {
  const { id, environment, task, group, run } = opening;
  refuseSecrets({ id, environment, "task.id": task?.id, group }, options);
  refuseSecrets({ "run.worker": run?.worker, "run.claim": run?.claim }, options);
  return opening;
}

export function redactClosing(
  { ending, scores, finalState }: z.output<typeof closeRequest>,
  options: RedactOptions,
): z.output<typeof closeRequest> {
  for (const [i, { name }] of (scores ?? []).entries())
    refuseSecrets({ [`scores.${i}.name`]: name }, options);
  return {
    scores,
    ending:
      ending?.kind === "failed"
        ? { ...ending, message: redactedText(ending.message, MAX_MESSAGE, options) }
        : ending,
    finalState: finalState === undefined ? undefined : redactValue(finalState, options),
  };
}

export function redactFeedback(
  feedback: z.output<typeof feedbackRequest>,
  options: RedactOptions,
): z.output<typeof feedbackRequest> {
  const { name, idempotencyKey, source } = feedback;
  refuseSecrets({ name, idempotencyKey }, options);
  return { ...feedback, source: redactedText(source, MAX_SOURCE, options) };
}

/** Throws if redaction would change one of these names. The refusal names the field, not its value. */
export function refuseSecrets(
  names: Readonly<Record<string, string | undefined>>,
  options: RedactOptions,
): void {
  for (const [field, name] of Object.entries(names))
    if (name !== undefined && redactValue(name, options) !== name)
      throw new HttpRefusal(
        400,
        "secret-in-name",
        `${field}: holds a key, a token or what \`redact\` names, and names are recorded as they are. Choose another.`,
      );
}

/** Length limits of the records. */
const MAX_MESSAGE = 4096;
const MAX_SOURCE = 512;

/** A replacement may be longer than its secret, so the text is cut to its limit. */
function redactedText(text: string, maxLength: number, options: RedactOptions): string {
  const redacted = redactValue(text, options);
  return typeof redacted === "string" ? redacted.slice(0, maxLength).toWellFormed() : REDACTED;
}

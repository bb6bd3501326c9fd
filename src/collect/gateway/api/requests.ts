/** Schemas of client requests about rollouts. In: parsed JSON. Out: a checked request, or a refusal. Strict: a typo
 *  is refused, not ignored. */
import * as z from "zod";
import { asSentence, type Json } from "../../../base/index.ts";
import {
  configProblem,
  count,
  dataSource,
  digest,
  ending,
  environmentKey,
  finite,
  id,
  json,
  rolloutRun,
  SINGLE_TASK,
  text,
} from "../../../contract/index.ts";
import { isReward, totalOf } from "../../rollout/index.ts";
import { HttpRefusal } from "../wire/index.ts";
import { decodePart } from "./api-path.ts";

const seed = z
  .union([z.string().regex(/^(0|[1-9][0-9]{0,19})$/, "is not a decimal u64"), count])
  .transform((value) => BigInt(value))
  .refine((value) => value < 1n << 64n, "exceeds 2^64−1");

const taskId = id.refine(
  (name) => name !== SINGLE_TASK,
  `${SINGLE_TASK} is the gateway's name for calls without a rollout, choose another`,
);

export const openRequest = z.strictObject({
  id: z.optional(id),
  environment: z.optional(environmentKey),
  task: z.optional(z.strictObject({ id: taskId, digest: z.optional(digest) })),
  assignment: z.optional(z.strictObject({ digest, sample: count })),
  group: z.optional(id),
  seed: z.optional(seed),
  dataSource: z.optional(dataSource),
  maxTurns: z.optional(count),
  budgetUsd: z.optional(finite.min(0)),
  run: z.optional(rolloutRun),
  router: z.optional(digest),
});

export const closeRequest = z.strictObject({
  ending: z.optional(ending),
  scores: z.optional(
    z
      .array(
        z.strictObject({
          name: id,
          value: finite,
          weight: finite.default(1),
          scorer: z.optional(digest),
        }),
      )
      .max(1024)
      // Rewards are stored as floats. A sum beyond the float range could not be sealed.
      .refine((scores) => isReward(totalOf(scores)), "add up to more than a float holds"),
  ),
  /** The state in which the rollout ended: any JSON. */
  finalState: z.optional(json as z.ZodType<Json>),
});

/** Fields of POST /v1/route besides those of a chat request. */
export const routeContext = z.strictObject({
  prompt: z.optional(z.string()),
  context: z.optional(z.record(text(128), z.union([text(1024), finite, z.boolean()]))),
});

export const feedbackRequest = z
  .strictObject({
    /** `<rollout>.<number>`, as in the header x-rollbook-call. */
    call: z.optional(text(512)),
    rollout: z.optional(id),
    name: id,
    /** True is 1 and false is 0, as in imports. */
    value: z.preprocess(
      (value) => (typeof value === "boolean" ? Number(value) : value),
      finite.refine(isReward, "is more than a float holds"),
    ),
    source: text(512).default("feedback"),
    idempotencyKey: text(256).min(1),
  })
  .refine(
    ({ call, rollout }) => (call === undefined) !== (rollout === undefined),
    "name either call or rollout",
  );

export function check<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problem = configProblem(schema, result.error.issues, value);
  throw new HttpRefusal(400, "bad-request", `the request: ${asSentence(problem)}`);
}

/** Splits the name of a call into its rollout and its number. */
export function splitCall(name: string): { rollout: string; call: number } {
  const [, rollout, number] = /^(.+)\.(\d{1,9})$/.exec(name) ?? [];
  if (rollout === undefined)
    throw new HttpRefusal(400, "bad-request", "call: is not of the form <rollout>.<number>.");
  return { rollout: decodePart(rollout), call: Number(number) };
}

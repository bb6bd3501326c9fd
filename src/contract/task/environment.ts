/** The environment of a rollout: the key `ref@version`, and the package behind it. */
import * as z from "zod";
import { idFault } from "../../base/index.ts";
import { count, defineRecord, digest, id, json, type RecordOf, refuse, text } from "../codec/index.ts";

export type EnvironmentKey = `${string}@${string}` & { readonly __brand: "EnvironmentKey" };

export const environmentKey = z
  .string()
  .refine((key) => keyFault(key) === undefined, {
    error: (issue) => `is not of the form ref@version: ${keyFault(issue.input as string)}`,
    params: { refusal: "bad-id" },
  })
  .meta({
    id: "EnvironmentKey",
    description: "ref@version, both of them ids",
    pattern: "^[^@|/\\\\]+@[^@|/\\\\]+$",
  }) as unknown as z.ZodType<EnvironmentKey, string>;

function keyFault(key: string): string | undefined {
  const at = key.indexOf("@");
  if (at < 0) return "there is no @";
  const ref = idFault(key.slice(0, at));
  if (ref !== undefined) return `the ref ${ref}`;
  const version = idFault(key.slice(at + 1));
  return version === undefined ? undefined : `the version ${version}`;
}

/** Environment of decisions without a call; the task of such a decision is the input that the policy saw. */
export const DECISION_LOG = "decision-log@1" as EnvironmentKey;

export const EnvironmentPackage = defineRecord({
  kind: "rollbook.environment-package.v1",
  summary: "Everything an environment consists of, under the key ref@version; the digest covers it all.",
  shape: {
    key: environmentKey,
    execution: z.strictObject({
      entrypoint: text(),
      args: z.array(text()).max(1024),
      sandboxProfile: z.optional(id),
      maxTurns: count,
      timeBudgetMs: count,
    }),
    files: z.array(z.strictObject({ path: text(1024), digest })).max(100_000),
    tools: z.array(json).max(1024),
    datasets: z.array(z.strictObject({ name: id, digest })).max(1024),
    rubrics: z.array(z.strictObject({ name: id, digest })).max(1024),
    difficulty: z.optional(text(64)),
    benchmarkProfiles: z.array(json).max(1024),
  },
  check({ files }) {
    const paths = new Set<string>();
    for (const [i, { path }] of files.entries()) {
      const field = `files[${i}].path`;
      // A package is unpacked into a folder; a path must not lead out of it.
      if (/(^|\/)(\.{0,2})(\/|$)|[\\\u0000-\u001f]/.test(path))
        throw refuse(
          "bad-record",
          { field, path },
          `${field} ${JSON.stringify(path)} is not a plain relative path.`,
        );
      if (paths.has(path)) throw refuse("bad-record", { field, path }, `${field} ${path} appears twice.`);
      paths.add(path);
    }
  },
});
export type EnvironmentPackage = RecordOf<typeof EnvironmentPackage>;

/** psionic-v1 rollout artifacts: creation with a digest, and checks against it. */
import type { z } from "zod";
import { refuse, refuseIssues } from "../codec/index.ts";
import { digestPsionicArtifact } from "./digest.ts";
import { type PsionicArtifact, psionicArtifact } from "./schema.ts";

/** Takes fields in any accepted form (u64 as number, bigint or decimal string). Returns the artifact with its
 *  digest. */
export function makePsionicArtifact(
  fields: Omit<z.input<typeof psionicArtifact>, "artifact_digest">,
): PsionicArtifact {
  const artifact = decodePsionic(psionicArtifact, { ...fields, artifact_digest: "" }, "psionic artifact");
  return checkPsionicArtifact({ ...artifact, artifact_digest: digestPsionicArtifact(artifact) });
}

/** The original implementation checks a digest only when it makes an artifact. Here every read refuses a forged
 *  digest. */
export function checkPsionicArtifact(artifact: PsionicArtifact): PsionicArtifact {
  const { artifact_id, samples, proof_references, artifact_digest } = artifact;
  if (samples.length === 0) {
    throw refuse(
      "empty-samples",
      { artifact: artifact_id },
      `psionic artifact ${artifact_id} holds no sample. Record at least one.`,
    );
  }
  const seen = new Set<string>();
  for (const { digest } of proof_references) {
    if (seen.has(digest))
      throw refuse(
        "duplicate-proof",
        { artifact: artifact_id, digest },
        `psionic artifact ${artifact_id} names the proof ${digest} twice. Keep one.`,
      );
    seen.add(digest);
  }
  requirePsionicDigest(`artifact ${artifact_id}`, artifact_digest, digestPsionicArtifact(artifact));
  return artifact;
}

export function requirePsionicDigest(what: string, claimed: string, actual: string): void {
  if (claimed === actual) return;
  throw refuse(
    "digest-mismatch",
    { what, expected: claimed, actual },
    `psionic ${what} claims the digest ${claimed}, its content gives ${actual}. Fetch the original again.`,
  );
}

export function decodePsionic<T extends z.ZodType>(schema: T, value: unknown, where: string): z.output<T> {
  const result = schema.safeParse(value);
  if (!result.success) throw refuseIssues(result.error.issues, value, where);
  return result.data;
}

/** Small policies to serve, and verdicts that release them. In: a name and the preferred candidate. Out: a checkpoint,
 *  in memory or in a folder; a sealed verdict. Written by hand: a policy sees only the bias and the word "prove". */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Digest } from "../../src/base/index.ts";
import { decodeWire, GateVerdict, type RevisionKey, type Sealed, seal } from "../../src/contract/index.ts";
import {
  type Checkpoint,
  DEFAULT_FEATURES,
  type DecisionCandidate,
  type FeatureSpec,
  makeFeatureReader,
  type PolicyModel,
  type Router,
  sealCheckpoint,
  writeCheckpoint,
} from "../../src/policy/index.ts";
import { exampleWire } from "./examples.ts";

export const SPEC: FeatureSpec = { ...DEFAULT_FEATURES, wordBuckets: 256 };
export const ARMS = ["small", "large"] as const;

export const asked = (...ids: string[]): DecisionCandidate[] =>
  (ids.length === 0 ? [...ARMS] : ids).map((id) => ({ id, selectable: true, reasons: [], features: {} }));

/** `sure` is the weight of the preference: 4 gives a confidence of 0.98, 0 gives 0.5. Prompts with "prove" always
 *  favour large. */
export function makePolicy(
  id: string,
  {
    prefers = "large",
    sure = 4,
    family = "router",
    spec = SPEC,
    arms = ARMS,
    at = 1000,
  }: {
    prefers?: string;
    sure?: number;
    family?: string;
    spec?: FeatureSpec;
    arms?: readonly string[];
    at?: number;
  } = {},
): Checkpoint {
  const { size, context } = makeFeatureReader(spec);
  const weights = new Float64Array(arms.length * size);
  weights[arms.indexOf(prefers) * size] = sure;
  const { indices, values } = context({ prompt: "prove", fields: {} });
  const word = indices.findIndex((index) => index >= size - spec.wordBuckets);
  if (arms.includes("large"))
    weights[arms.indexOf("large") * size + indices[word]!] = 6 * Math.sign(values[word]!);
  const model: PolicyModel = {
    kind: "softmax-linear",
    ...{ spec, arms, config: { made: id }, settings: {} },
    tensors: {
      weights: { shape: [arms.length, size], data: weights },
      candidate_weights: {
        shape: [spec.candidate.length],
        data: new Float64Array(spec.candidate.length),
      },
    },
  };
  return sealCheckpoint(model, { family, id, batches: [], seed: 0n, producedAtMs: at });
}

/** Writes the checkpoint to a new folder; returns its path. */
export function placePolicy(checkpoint: Checkpoint, name = "policy"): string {
  const folder = join(mkdtempSync(join(tmpdir(), "rollbook-served-")), name);
  writeCheckpoint(folder, checkpoint);
  return folder;
}

export function keyOf({ revision: { record } }: Checkpoint): RevisionKey {
  return { id: record.id, digest: record.digest };
}

/** A gate verdict on this router; it passes by default. */
export function verdictOn(
  checkpoint: Checkpoint,
  router: Pick<Router, "floor" | "exploration" | "table"> & { digest: Digest },
  { atMs = 2000, outcome = "pass" }: { atMs?: number; outcome?: "pass" | "refuse" } = {},
): Sealed<GateVerdict> {
  const wire = exampleWire(GateVerdict.kind) as { candidates: object[] };
  const { digest, floor, exploration, table } = router;
  const revision = keyOf(checkpoint);
  const refused = outcome === "refuse";
  const { passed: _, ...rest } = wire as Record<string, unknown>;
  const record = decodeWire(
    GateVerdict,
    {
      ...rest,
      ...(refused ? {} : { passed: revision }),
      outcome,
      candidates: [
        {
          ...wire.candidates[0],
          ...{ revision, outcome, reasons: refused ? ["worse"] : [] },
          router: { digest, table: table.digest, floor, exploration },
        },
      ],
      atMs,
    },
    "verdict",
  );
  return seal(GateVerdict, record);
}

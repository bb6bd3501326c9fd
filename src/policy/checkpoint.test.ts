import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { digestJson } from "../base/digest.ts";
import { type PolicyModel, readCheckpoint, sealCheckpoint, writeCheckpoint } from "./checkpoint.ts";
import { DEFAULT_FEATURES, type FeatureSpec } from "./feature-spec.ts";
import { policyOf } from "./policy-of.ts";

const model: PolicyModel = {
  kind: "ucb1",
  spec: { ...DEFAULT_FEATURES, wordBuckets: 0 },
  arms: ["large", "small"],
  config: { algorithm: "ucb1" },
  settings: { exploration: 1 },
  tensors: {
    counts: { shape: [2], data: Float64Array.of(3, 4) },
    sums: { shape: [2], data: Float64Array.of(1, 2.5) },
  },
};
const facts = {
  family: "router",
  id: "router-r1",
  batches: [digestJson("test", 1)],
  seed: 7n,
  producedAtMs: 1000,
};
function folder(): string {
  const root = mkdtempSync(join(tmpdir(), "rollbook-checkpoint-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return join(root, "policy");
}
const refused = (code: string) => expect.objectContaining({ code }) as Error;

describe("a checkpoint", () => {
  test("comes back as it was written, with parent, batches, config and seed in its revision", () => {
    const path = folder();
    const first = sealCheckpoint(model, facts);
    const next = sealCheckpoint(model, { ...facts, id: "router-r2", parent: first.revision.record });
    writeCheckpoint(path, next);
    const read = readCheckpoint(path, { spec: model.spec });
    expect(read.model).toEqual(model);
    expect(read.revision.digest).toBe(next.revision.digest);
    expect(read.revision.record).toMatchObject({
      number: 2n,
      parent: { id: "router-r1", digest: first.revision.record.digest },
      training: { batches: facts.batches, seed: 7n },
    });
    expect(policyOf(read).revision).toEqual({ id: "router-r2", digest: first.revision.record.digest });
  });

  test("is there whole or not at all, and is never overwritten", () => {
    const path = folder();
    writeCheckpoint(path, sealCheckpoint(model, facts));
    expect(readdirSync(path).sort()).toEqual(["policy.safetensors", "revision.json"]);
    expect(readdirSync(join(path, ".."))).toEqual(["policy"]);
    expect(() => writeCheckpoint(path, sealCheckpoint(model, facts))).toThrow(refused("exists"));
  });

  test("is refused when a byte differs, when it is cut, and when a file is missing", () => {
    const path = folder();
    writeCheckpoint(path, sealCheckpoint(model, facts));
    const weights = join(path, "policy.safetensors");
    const whole = readFileSync(weights);
    const changed = Buffer.from(whole);
    changed[whole.length - 1]! ^= 1;
    writeFileSync(weights, changed);
    expect(() => readCheckpoint(path)).toThrow(refused("digest-mismatch"));
    truncateSync(weights, 20);
    expect(() => readCheckpoint(path)).toThrow(refused("digest-mismatch"));
    rmSync(weights);
    expect(() => readCheckpoint(path)).toThrow(refused("no-checkpoint"));
  });

  test.each([Buffer.from([0xff, 0xfe]), Buffer.from('{"id":'), Buffer.from('{ "id": "a" }')])(
    "whose revision is damaged says how to restore it: %s",
    (damaged) => {
      const path = folder();
      writeCheckpoint(path, sealCheckpoint(model, facts));
      writeFileSync(join(path, "revision.json"), damaged);
      expect(() => readCheckpoint(path)).toThrow(
        /revision\.json: the file is damaged or was edited\. Restore the file or train again\./,
      );
    },
  );

  test("of another feature spec is refused, with both digests and what differs", () => {
    const path = folder();
    writeCheckpoint(path, sealCheckpoint(model, facts));
    expect(() =>
      readCheckpoint(path, {
        spec: { ...DEFAULT_FEATURES, ...model.spec, maxWords: 3, candidate: ["price"] } as FeatureSpec,
      }),
    ).toThrow(
      /trained on the feature spec sha256:\w+, asked for sha256:\w+; they differ in maxWords, candidate/,
    );
  });

  test("whose tensors do not fit its arms is refused by name of the tensor", () => {
    const bad = { ...model, arms: ["large"] };
    expect(() => policyOf(sealCheckpoint(bad, facts))).toThrow("tensor counts of shape [1]");
  });
});

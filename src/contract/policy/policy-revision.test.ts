import { describe, expect, test } from "vitest";
import { d } from "../../../test/support/examples.ts";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { makeRevision } from "../../../test/support/shelf.ts";
import { parseId } from "../../base/ids.ts";
import { advanceRevision, revisionDrift } from "./policy-revision.ts";

const at = (number?: bigint, family = "train.decoder") =>
  makeRevision("policy-r1", { family: parseId(family), ...(number === undefined ? {} : { number }) }).record;

describe("policy revisions", () => {
  test("drift is known only within one family, between numbered revisions, backwards", () => {
    expect(revisionDrift(at(5n), at(2n))).toBe(3n);
    expect(revisionDrift(at(5n), at(5n))).toBe(0n);
    expect(revisionDrift(at(2n ** 64n - 1n), at(0n))).toBe(2n ** 64n - 1n);
    expect(revisionDrift(at(2n), at(5n))).toBeUndefined();
    expect(revisionDrift(at(5n), at())).toBeUndefined();
    expect(revisionDrift(at(5n), at(2n, "another"))).toBeUndefined();
  });

  test("the next revision is numbered one up and bound to its parent's digest", () => {
    const parent = at(4n);
    const next = advanceRevision(parent, {
      id: parseId("policy-r2"),
      digest: d("weights"),
      producedAtMs: 2000,
    });
    expect(next.record).toMatchObject({ number: 5n, parent: { id: parent.id, digest: parent.digest } });
  });

  test("a revision cannot be its own parent, nor be numbered past 2^64−1", () => {
    const next = { id: parseId("policy-r1"), digest: d("weights"), producedAtMs: 2000 };
    expect(refusalOf(() => advanceRevision(at(1n), next)).code).toBe("revision-conflict");
    const last = { ...next, id: parseId("policy-r2") };
    expect(refusalOf(() => advanceRevision(at(2n ** 64n - 1n), last)).fields.field).toBe("$.number");
  });
});

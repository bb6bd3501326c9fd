import { describe, expect, test } from "vitest";
import { d } from "../../../test/support/examples.ts";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { makeRevision } from "../../../test/support/shelf.ts";
import { parseId } from "../../base/ids.ts";
import { seal } from "../codec/record.ts";
import { PolicyRevision, revisionDrift, succeeding } from "./policy-revision.ts";

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
    expect(succeeding(parent)).toEqual({ number: 5n, parent: { id: parent.id, digest: parent.digest } });
    expect(succeeding(at())).toEqual({ parent: { id: parent.id, digest: at().digest } });
    expect(succeeding(undefined)).toEqual({ number: 1n });
  });

  test("a revision cannot be its own parent, nor be numbered past 2^64−1", () => {
    const next = (id: string, number: bigint) => {
      const { family } = at(number);
      const facts = { family, id: parseId(id), digest: d("weights"), producedAtMs: 2000 };
      return refusalOf(() => seal(PolicyRevision, { ...facts, ...succeeding(at(number)) }));
    };
    expect(next("policy-r1", 1n).code).toBe("revision-conflict");
    expect(next("policy-r2", 2n ** 64n - 1n).fields.field).toBe("$.number");
  });
});

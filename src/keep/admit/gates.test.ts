import { describe, expect, it } from "vitest";
import { makeRollout } from "../../../test/support/shelf.ts";
import { assignment, rolloutFor } from "../../../test/support/worker-server.ts";
import { parseId } from "../../base/ids.ts";
import {
  Receipt,
  type ReceiptOutcome,
  rolloutIdFor,
  type SealedRollout,
  seal,
} from "../../contract/index.ts";
import { makeGates } from "./gates.ts";

const item = rolloutIdFor(assignment.digest, 0);
const claim = (token: number) => ({
  ...{ item, token, attempt: token, worker: "w1", expiresAtMs: 0 },
  payload: { assignment: assignment.digest, sample: 0 },
});
const [first, second] = [rolloutFor(claim(1)), rolloutFor(claim(2), {}, { rewards: [0, 0, 1] })];

function receipt(of: SealedRollout, outcome: ReceiptOutcome, atMs: number, token = 1) {
  return seal(Receipt, {
    ...{ subject: of.content.digest, claim: parseId(`${item}:${token}`), worker: parseId("w1") },
    ...{ outcome, signals: [], message: "", atMs },
  });
}

function excluded(receipts: ReturnType<typeof receipt>[], ...rollouts: SealedRollout[]) {
  const gates = makeGates({
    ...{
      verdicts: [],
      releases: [],
      receipts,
      family: "f",
      requireVerdict: false,
      failedTasks: new Set<string>(),
    },
  });
  return rollouts.map(({ content }) => gates.receiptGate(content.digest, content.record));
}

describe("receipts decide which artifact is the result of an assignment", () => {
  it("one that was accepted stands, another of the same assignment does not, with a receipt or without", () => {
    expect(excluded([receipt(second, "stored", 5, 2)], first, second)).toEqual(["not-accepted", undefined]);
    const both = [receipt(second, "duplicate", 4, 2), receipt(first, "accepted-exact", 5)];
    expect(excluded(both, first, second)).toEqual([undefined, "not-accepted"]);
  });

  it("of two that were accepted, as when a queue was lost, the earlier stands", () => {
    const both = [receipt(second, "stored", 9, 2), receipt(first, "stored", 5)];
    expect(excluded(both, first, second)).toEqual([undefined, "not-accepted"]);
  });

  it("one that came too late does not count, even where nobody else came", () => {
    expect(excluded([receipt(first, "expired", 5)], first)).toEqual(["not-accepted"]);
  });

  it("a quarantined or discarded one is the result all the same: verdicts say what it may teach", () => {
    expect(excluded([receipt(first, "discarded", 5)], first, second)).toEqual([undefined, "not-accepted"]);
  });

  it("one without a claim judges an artifact and makes it nobody's result, as those of gateways do", () => {
    const { claim: _, ...judged } = receipt(first, "accepted-exact", 1).record;
    const gateways = seal(Receipt, judged);
    expect(excluded([gateways, receipt(second, "stored", 5, 2)], first, second)).toEqual([
      "not-accepted",
      undefined,
    ]);
    expect(excluded([gateways], first)).toEqual([undefined]);
  });

  it("without any receipt, or without an assignment, nothing is left out", () => {
    expect(excluded([], first, second)).toEqual([undefined, undefined]);
    expect(excluded([receipt(first, "stored", 5)], makeRollout("free"))).toEqual([undefined]);
  });
});

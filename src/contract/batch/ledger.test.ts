import { describe, expect, test } from "vitest";
import { d, exampleWire } from "../../../test/support/examples.ts";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { decodeWire, seal } from "../codec/record.ts";
import { LedgerPage, LossLedger } from "./ledger.ts";

describe("the loss ledger", () => {
  const ledger = decodeWire(LossLedger, exampleWire(LossLedger.kind), "ledger");

  test.each(["considered", "batched", "excluded"] as const)("%s off by one does not add up", (part) => {
    for (const name of ["artifacts", "streams", "samples", "tokens"] as const) {
      const wrong = { ...ledger, [part]: { ...ledger[part], [name]: ledger[part][name] + 1 } };
      expect(refusalOf(() => seal(LossLedger, wrong)).fields.field).toBe(name);
    }
  });

  test("reasons that do not sum to what was excluded are refused", () => {
    expect(refusalOf(() => seal(LossLedger, { ...ledger, reasons: [] })).message).toContain(
      "does not add up",
    );
  });

  test("a page is sorted by rollout and stream, and excludes nothing twice", () => {
    const [one, two] = [d("a"), d("b")].sort();
    const entry = (content: typeof one, stream: number | null) => ({
      content: content!,
      stream,
      reason: "cancelled" as const,
      samples: 1,
      tokens: 1,
    });
    seal(LedgerPage, { entries: [entry(one, 0), entry(one, 2), entry(two, null)] });
    for (const entries of [
      [entry(two, 0), entry(one, 0)],
      [entry(one, 1), entry(one, 0)],
      [entry(one, 1), entry(one, 1)],
      [entry(one, null), entry(one, 0)],
      [entry(one, 0), entry(one, null)],
    ])
      expect(refusalOf(() => seal(LedgerPage, { entries })).fields.field).toBe("entries[1]");
  });
});

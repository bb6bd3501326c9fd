import { expect, test } from "vitest";
import { exampleWire } from "../../../test/support/examples.ts";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { decodeWire } from "../codec/record.ts";
import { Rollback } from "./rollback.ts";

const wire = exampleWire(Rollback.kind) as Record<string, Record<string, object>>;
const decode = (over: object) => decodeWire(Rollback, { ...wire, ...over }, "rollback");

test("a rollback whose evidence does not show harm is refused, by field", () => {
  const evidence = (over: object) => ({ evidence: { ...wire.evidence, ...over } });
  const cases: [object, string][] = [
    [{ to: wire.from }, "to"],
    [evidence({ pairs: 3 }), "evidence.terms"],
    [evidence({ upper: 0 }), "evidence.upper"],
    [evidence({ margin: 0.1 }), "evidence.upper"],
  ];
  for (const [over, field] of cases)
    expect(refusalOf(() => decode(over))).toMatchObject({ code: "bad-record", fields: { field } });
});

test("a rollback leads to its differences and to the rollouts they come from", () => {
  const needed = Rollback.references(decode({})).filter(({ external }) => external !== true);
  expect(needed.map(({ field }) => field)).toEqual([
    "evidence.terms",
    "evidence.decisions",
    "evidence.manifest",
  ]);
});

import { expect, test } from "vitest";
import { exampleWire } from "../../../test/support/examples.ts";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { decodeWire } from "../codec/record.ts";
import { BanditIncrement } from "./bandit-increment.ts";

const wire = exampleWire(BanditIncrement.kind) as Record<string, object>;
const columns = wire.columns as Record<string, object>;
const decode = (over: object) => decodeWire(BanditIncrement, { ...wire, ...over }, "increment");

test("sums that do not fit their candidates and features are refused, by field", () => {
  const { gram: _gram, response: _response, ...tally } = columns;
  const cases: [object, string][] = [
    [{ arms: ["small", "small"] }, "arms"],
    [{ arms: ["a", "b", "c"] }, "columns.counts"],
    [{ columns: tally }, "columns.gram"],
    [{ features: undefined }, "columns.gram"],
    [{ columns: { ...columns, gram: { ...columns.gram, length: 11 } } }, "columns.gram"],
    [{ rewards: { low: 1, high: 0 } }, "rewards"],
    [{ decisions: { ...wire.decisions, count: 0 } }, "$.decisions.count"],
  ];
  for (const [over, field] of cases)
    expect(refusalOf(() => decode(over))).toMatchObject({ code: "bad-record", fields: { field } });
});

test("counts alone need no features, and a snapshot leads to its columns, not to its parts", () => {
  const { gram: _gram, response: _response, ...tally } = columns;
  const { features: _features, ...plain } = wire;
  const record = decodeWire(BanditIncrement, { ...plain, columns: tally }, "increment");
  const fields = BanditIncrement.references(record).filter(({ external }) => external !== true);
  expect(fields.map(({ field }) => field)).toEqual([
    "decisions.ids",
    "decisions.units",
    "columns.counts",
    "columns.sums",
  ]);
});

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { UPSTREAM_FAULTS } from "../src/collect/gateway/upstream/upstream.ts";
import { CANDIDATE_REASONS, DECISION_REASONS, MASK_REASONS } from "../src/policy/decision.ts";

const page = readFileSync("docs/reference/serve.md", "utf8");

/** The cells of the table with this first heading, without the headings. */
function tableOf(heading: string): string[][] {
  const rows = page.split("\n").map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim().replace(/^`(.*)`$/, "$1")),
  );
  const start = rows.findIndex(([first]) => first === heading) + 2;
  return rows.slice(start, start + rows.slice(start).findIndex((cells) => cells.length === 0));
}

describe("docs/reference/serve.md", () => {
  it("lists every reason of a decision and of a candidate, with its meaning", () => {
    expect(tableOf("reason")).toEqual(Object.entries(DECISION_REASONS));
    expect(tableOf("reasons")).toEqual(Object.entries(CANDIDATE_REASONS));
    expect(Object.keys(MASK_REASONS)).toEqual(Object.keys(CANDIDATE_REASONS).slice(0, 6));
  });

  it("lists every fault of an upstream with its status", () => {
    const faults = tableOf("code").filter(([code]) => code!.startsWith("upstream-"));
    expect(faults.map(([code, status]) => [code, Number(status)])).toEqual(Object.entries(UPSTREAM_FAULTS));
  });
});

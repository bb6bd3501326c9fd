import { spawnSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { benchBlocks } from "../../scripts/report/bench-report.ts";
import { fillBlocks, markdownTable, pageOfMarkdown } from "../../scripts/report/markdown.ts";
import { parseResult } from "../../src/judge/bench/index.ts";
import { Cli } from "../support/cli.ts";

const PACK = "examples/example-pack.tar";

describe("the example pack of the package", () => {
  it("is small, and verifies from its results down to its tasks", async () => {
    expect(statSync(PACK).size).toBeLessThan(1_000_000);
    const [{ run, broken }] = await new Cli().json(`pack verify ${PACK}`);
    expect([run.name, broken]).toEqual(["example", []]);
  }, 60_000);

  it("runs again to the same bytes, whatever machine and Node sealed it", async () => {
    const [{ differences, record }] = await new Cli().json(`pack rerun ${PACK}`);
    expect(differences).toEqual([]);
    expect(record.code.dirty).toBe(false);
  }, 120_000);

  it("is refused with the broken link named if a figure in it is changed", async () => {
    const cli = new Cli();
    const bytes = readFileSync(PACK);
    const at = bytes.indexOf('"gapClosed":0.') + '"gapClosed":0.'.length;
    bytes[at] = bytes[at] === 49 ? 50 : 49;
    const { code, err } = await cli.run(["pack", "verify", cli.file("changed.tar", bytes)]);
    expect([code, err]).toEqual([1, expect.stringContaining("results.json")]);
  }, 60_000);
});

describe("the technical report", () => {
  it("is in the repository as its results give it", () => {
    const run = spawnSync("node_modules/.bin/tsx", ["scripts/write-report.ts", "--check"], {
      encoding: "utf8",
    });
    expect([run.status, run.stderr]).toEqual([0, ""]);
  }, 60_000);

  it("says what the figures say: another result, another answer", () => {
    const result = parseResult(readFileSync("docs/report/results.json", "utf8"), "results");
    const [table, ...learned] = result.arms;
    const worse = learned.map((arm) => ({
      ...arm,
      versus: { ...arm.versus, low: -0.2, mean: -0.1, high: -0.05 },
    }));
    expect(benchBlocks(result).answer).toMatch(/^Yes\./);
    expect(benchBlocks({ ...result, arms: [table!, ...worse] }).answer).toMatch(
      /^No: the best arm earns less\./,
    );
  });

  it("is filled block by block, and rendered without a word of HTML from its source", () => {
    const filled = fillBlocks("a\n<!-- generated: x -->\nold\n<!-- end -->\nb", {
      x: markdownTable(["h"], [["1"]]),
    });
    expect(filled).toBe("a\n<!-- generated: x -->\n\n| h   |\n| --- |\n| 1   |\n\n<!-- end -->\nb");
    expect(() => fillBlocks("<!-- generated: y -->\n<!-- end -->", {})).toThrow(
      /no block is generated for y/,
    );
    const html = pageOfMarkdown(
      "# T\n\n**b** `c` [l](x.md) <i>\n\n- one\n- two\n\n```sh\nrun <x>\n```\n",
      new Map(),
    );
    expect(html).toContain("<h1>T</h1><p><strong>b</strong> <code>c</code> l &lt;i&gt;</p>");
    expect(html).toContain("<ul><li>one</li><li>two</li></ul><pre><code>run &lt;x&gt;\n</code></pre>");
  });
});

import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { REFUSALS } from "../src/contract/codec/refusal.ts";
import { EXCHANGE_TYPES } from "../src/contract/json-schema.ts";

const page = readFileSync("docs/reference/contracts.md", "utf8");

/** The cells of the table with this first heading, without the heading. */
function tableOf(heading: string): string[][] {
  const rows = page.split("\n").map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  const start = rows.findIndex(([first]) => first === heading) + 2;
  return rows.slice(start, start + rows.slice(start).findIndex((cells) => cells.length === 0));
}

describe("docs/reference/contracts.md", () => {
  test("lists every record kind with its summary", () => {
    const expected = EXCHANGE_TYPES.map(({ kind, summary }) => [`\`${kind}\``, summary.replace(/\.$/, "")]);
    expect(tableOf("kind")).toEqual(expected);
  });

  test("lists every refusal with its meaning", () => {
    const expected = Object.entries(REFUSALS).map(([code, meaning]) => [`\`${code}\``, meaning]);
    expect(tableOf("code")).toEqual(expected);
  });

  test("has an example that prints what the page says", () => {
    const [, code = "", output = ""] = /```ts\n([\s\S]*?)```\n\n```text\n([\s\S]*?)```/.exec(page) ?? [];
    mkdirSync(".cache/contracts-page", { recursive: true });
    const file = ".cache/contracts-page/example.ts";
    writeFileSync(file, code.replaceAll(/"rollbook\/(\w+)"/g, '"../../src/$1/index.ts"'));
    const { stdout, stderr } = spawnSync(process.execPath, ["--import", "tsx", file], { encoding: "utf8" });
    expect(stdout, stderr).toBe(output);
  });
});

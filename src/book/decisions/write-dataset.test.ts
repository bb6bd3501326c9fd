import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { RollbookError } from "../../base/index.ts";
import { writeJsonLines } from "./write-dataset.ts";

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "rollbook-dataset-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

it("a file that appears while the rows are written is not replaced", async () => {
  const root = folder();
  const out = join(root, "rows.jsonl");
  const rows = async function* () {
    yield { row: 1 };
    writeFileSync(out, "of another");
  };
  await expect(writeJsonLines(out, rows())).rejects.toMatchObject({ code: "exists" });
  expect(readFileSync(out, "utf8")).toBe("of another");
  expect(readdirSync(root)).toEqual(["rows.jsonl"]);
});

it("two exports to neighbouring names do not write into one temporary file", async () => {
  const root = folder();
  const left = join(root, "rows.jsonl.part");
  writeFileSync(left, "of another");
  await writeJsonLines(
    join(root, "rows.jsonl"),
    (async function* () {
      yield { row: 1 };
    })(),
  );
  expect(readFileSync(left, "utf8")).toBe("of another");
});

it("where no row comes, nothing is left behind", async () => {
  const out = join(folder(), "rows.jsonl");
  const empty = new RollbookError("no-rows", {}, "no rows.");
  await expect(writeJsonLines(out, (async function* () {})(), () => empty)).rejects.toBe(empty);
  expect(existsSync(out)).toBe(false);
});

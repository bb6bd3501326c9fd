import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ByteWriter, parquetWrite } from "hyparquet-writer";
import { describe, expect, onTestFinished, test } from "vitest";
import type { LoggedRow } from "../../learn/index.ts";
import { type OutcomeColumns, readOutcomes } from "./outcome-table.ts";

const columns: OutcomeColumns = {
  prompt: "question",
  outcomes: ["small", "large"],
  costs: ["{}_cost"],
  features: ["subject", "tokens"],
};
const RECORDS = [
  {
    question: "2 + 2?",
    small: true,
    large: true,
    small_cost: 0.5,
    large_cost: 2,
    subject: "math",
    tokens: 4,
  },
  {
    question: "a, b\nand c",
    small: false,
    large: true,
    small_cost: 0.25,
    large_cost: 3,
    subject: "text",
    tokens: 9,
  },
];

function place(name: string, content: string | Uint8Array): string {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-outcomes-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

async function rowsOf(file: string, map = columns): Promise<LoggedRow[]> {
  const rows: LoggedRow[] = [];
  for await (const row of readOutcomes(file, { columns: map, source: "real" })) rows.push(row);
  return rows;
}

function asCsv(): string {
  const names = Object.keys(RECORDS[0]!) as (keyof (typeof RECORDS)[0])[];
  const cell = (value: unknown) => (/[,\n]/.test(String(value)) ? `"${value}"` : String(value));
  return [names.join(","), ...RECORDS.map((row) => names.map((name) => cell(row[name])).join(","))].join(
    "\n",
  );
}

function asParquet(): Uint8Array {
  const writer = new ByteWriter();
  const names = Object.keys(RECORDS[0]!) as (keyof (typeof RECORDS)[0])[];
  void parquetWrite({
    writer,
    columnData: names.map((name) => ({ name, data: RECORDS.map((row) => row[name]) })),
  });
  return writer.getBytes();
}

describe("a table of outcomes", () => {
  test("gives the same decisions as CSV, JSON Lines and Parquet", async () => {
    const csv = await rowsOf(place("all.csv", asCsv()));
    const json = await rowsOf(place("all.jsonl", RECORDS.map((row) => JSON.stringify(row)).join("\n")));
    const parquet = await rowsOf(place("all.parquet", asParquet()));
    expect(json).toEqual(csv);
    expect(parquet).toEqual(csv);
    expect(csv[1]!.context).toEqual({ prompt: "a, b\nand c", fields: { subject: "text", tokens: 9 } });
    expect(csv[1]!.candidates.map(({ outcome }) => outcome!.reward)).toEqual([0, 1]);
    expect(csv[1]!.candidates.map(({ outcome }) => outcome!.terms.cost!.value)).toEqual([0.25, 3]);
    expect(csv.map(({ propensity }) => propensity)).toEqual([null, null]);
  });

  test("counts equal rows apart and keeps their task together", async () => {
    const line = JSON.stringify(RECORDS[0]);
    const rows = await rowsOf(place("twice.jsonl", `${line}\n${line}\n`));
    expect(new Set(rows.map(({ id }) => id)).size).toBe(2);
    expect(new Set(rows.map(({ task }) => task)).size).toBe(1);
  });

  test("with free text for a category is refused with a hint", async () => {
    const many = Array.from({ length: 12 }, (_, i) =>
      JSON.stringify({ ...RECORDS[0], subject: `text ${i}` }),
    );
    await expect(rowsOf(place("free.jsonl", many.join("\n")))).rejects.toMatchObject({
      code: "free-text-category",
      fields: { column: "subject", values: 12, rows: 12 },
    });
  });

  test("without an outcome, a column or a readable file is refused with its place", async () => {
    const gap = { ...RECORDS[0], large: null };
    await expect(rowsOf(place("gap.jsonl", JSON.stringify(gap)))).rejects.toThrow(
      "gap.jsonl:1: large is empty",
    );
    const other = { ...columns, outcomes: ["huge"] };
    await expect(rowsOf(place("all.csv", asCsv()), other)).rejects.toThrow('"huge"');
    await expect(rowsOf(place("all.parquet", asParquet()), other)).rejects.toThrow('"huge"');
    await expect(rowsOf(place("bad.parquet", "no parquet at all"))).rejects.toThrow("is not a Parquet file");
  });
});

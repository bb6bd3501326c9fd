import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ByteWriter, parquetWrite } from "hyparquet-writer";
import { describe, expect, onTestFinished, test } from "vitest";
import type { ForeignDecision } from "../foreign-decision.ts";
import { type ColumnMap, readMappedTable } from "./mapped-table.ts";
import { surveyTable } from "./survey-table.ts";

function place(name: string, content: string | Uint8Array): string {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-mapped-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

const jsonl = (...records: object[]) =>
  place("log.jsonl", records.map((each) => `${JSON.stringify(each)}\n`).join(""));

async function decisions(file: string, columns: ColumnMap, actions?: readonly string[]) {
  const found: Omit<ForeignDecision, "line">[] = [];
  for await (const { line: _, ...rest } of readMappedTable(file, { columns, ...(actions && { actions }) }))
    found.push(rest);
  return found;
}

const MODELS = ["small", "medium", "large"];
const RECORDS = [
  {
    q: "2 + 2?",
    model: "small",
    p: 0.5,
    score: 1,
    usd: 0.25,
    ms: 120,
    at: "2026-01-02T03:04:05Z",
    topic: "sums",
    n: 5,
  },
  {
    q: "Prove it.",
    model: "large",
    p: 0.25,
    score: 0,
    usd: 2,
    ms: 900,
    at: "2026-01-02T03:05:05Z",
    topic: "proof",
    n: 9,
  },
];
const COLUMNS: ColumnMap = {
  ...{
    prompt: "q",
    action: "model",
    propensity: "p",
    reward: "score",
    cost: "usd",
    latency: "ms",
    time: "at",
  },
  features: ["topic", "n"],
};

function parquet(): string {
  const writer = new ByteWriter();
  const names = Object.keys(RECORDS[0]!) as (keyof (typeof RECORDS)[number])[];
  const columnData = names.map((name) => ({ name, data: RECORDS.map((each) => each[name]) }));
  void parquetWrite({ writer, columnData } as Parameters<typeof parquetWrite>[0]);
  return place("log.parquet", new Uint8Array(writer.getBuffer()));
}

test("CSV, JSON Lines and Parquet with the same rows give the same decisions", async () => {
  const names = Object.keys(RECORDS[0]!);
  const csv = [names, ...RECORDS.map((each) => Object.values(each))]
    .map((cells) => cells.join(","))
    .join("\n");
  const fromCsv = await decisions(place("log.csv", csv), COLUMNS, MODELS);
  expect(fromCsv[0]).toEqual({
    ...{ atMs: Date.UTC(2026, 0, 2, 3, 4, 5), action: 0, actions: 3, reward: 1, propensity: 0.5 },
    ...{ prompt: "2 + 2?", context: [["n", 5]], texts: { topic: "sums" } },
    terms: { cost: { value: 0.25, weight: 0 }, latency: { value: 120, weight: 0 } },
  });
  expect(await decisions(jsonl(...RECORDS), COLUMNS, MODELS)).toEqual(fromCsv);
  expect(await decisions(parquet(), COLUMNS, MODELS)).toEqual(fromCsv);
});

test("a time without an offset is marked, and an impossible date is refused with file, line and value", async () => {
  const columns: ColumnMap = { action: "m", reward: "r", time: "at" };
  const naive = await decisions(place("log.csv", "m,r,at\n0,1,2026-05-31 10:00:00\n"), columns);
  expect(naive).toMatchObject([{ atMs: Date.UTC(2026, 4, 31, 10), isUtcAssumed: true }]);
  const file = place("log.csv", "m,r,at\n0,1,2026-05-31T10:00:00Z\n0,1,2026-02-30T10:00:00Z\n");
  await expect(decisions(file, columns)).rejects.toThrow(
    expect.objectContaining({
      ...{ code: "bad-row", fields: { file, line: 3 } },
      message: expect.stringContaining('at "2026-02-30T10:00:00Z"'),
    }),
  );
});

describe("a map of paths", () => {
  const call = {
    request: {
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Why?" },
      ],
    },
    choices: [{ model: "a" }, { model: "b" }],
    scores: { quality: 0.75, usd: 0.5 },
    user: { session: "s-1" },
  };

  test("reaches into objects and lists, and takes the prompt that a gateway would show", async () => {
    const columns: ColumnMap = {
      ...{ messages: "request.messages", action: "choices[-1].model", session: "user.session" },
      ...{
        terms: [
          { column: "scores.quality", weight: 1 },
          { column: "scores.usd", weight: -0.5 },
        ],
        cost: "scores.usd",
      },
    };
    expect(await decisions(jsonl(call), columns, ["a", "b"])).toEqual([
      {
        ...{ action: 1, actions: 2, reward: 0.5, propensity: undefined, prompt: "Why?" },
        ...{ context: [], texts: {}, session: "s-1" },
        terms: { quality: { value: 0.75, weight: 1 }, cost: { value: 0.5, weight: -0.5 } },
      },
    ]);
  });

  test("that no row has is refused with the fields there are", async () => {
    const columns: ColumnMap = { action: "response.model", reward: "scores.quality" };
    await expect(surveyTable(jsonl(call), { columns })).rejects.toThrow(
      /no row has "response\.model"\. Correct the map: the file has request, choices, scores, user/,
    );
  });
});

test("rows may each list candidates of their own, any number of them", async () => {
  const columns: ColumnMap = { action: "model", reward: "r", candidates: "options" };
  const file = place("log.csv", 'model,r,options\nb,1,a|b|c\na,0,"[""a"", ""d""]"\n');
  expect((await decisions(file, columns)).map(({ names, action }) => [names, action])).toEqual([
    [["a", "b", "c"], 1],
    [["a", "d"], 0],
  ]);
  const stray = place("log.csv", "model,r,options\nz,1,a|b\n");
  await expect(decisions(stray, columns)).rejects.toThrow(/model "z" is not among the candidates a, b/);
});

test("a row without a choice stops the reading, however the candidates are known", async () => {
  const columns: ColumnMap = { action: "model", reward: "score" };
  const file = jsonl({ model: "", score: 1, among: ["a", "b"] }, { model: "0", score: 1 });
  const EMPTY = /log\.jsonl:1: model is empty\. Fill it in, or remove the row/;
  await expect(decisions(file, columns)).rejects.toThrow(EMPTY);
  await expect(decisions(file, columns, MODELS)).rejects.toThrow(EMPTY);
  await expect(decisions(file, { ...columns, candidates: "among" })).rejects.toThrow(EMPTY);
});

test("a reward made of terms is unlabelled where one of them is missing", async () => {
  const columns: ColumnMap = {
    action: "model",
    terms: [
      { column: "quality", weight: 1 },
      { column: "cost", weight: -1 },
    ],
  };
  const file = place("log.csv", "model,quality,cost\n0,true,0.25\n1,0.5,\n");
  expect((await decisions(file, columns)).map(({ reward }) => reward)).toEqual([0.75, undefined]);
});

describe("a text column given as a feature", () => {
  const rowsOf = (topic: (i: number) => string) =>
    place(
      "log.csv",
      ["model,r,topic", ...Array.from({ length: 12 }, (_, i) => `${i % 2},1,${topic(i)}`)].join("\n"),
    );
  const columns: ColumnMap = { action: "model", reward: "r", features: ["topic"] };

  test("with as many values as rows is refused with a hint", async () => {
    await expect(
      surveyTable(
        rowsOf((i) => `question ${i}`),
        { columns },
      ),
    ).rejects.toThrow(
      expect.objectContaining({
        code: "free-text-category",
        message: expect.stringMatching(/topic holds 12 different texts in 12 rows.*prompt=topic/),
      }),
    );
  });

  test("is a category where its values come again, and a number is none", async () => {
    expect(
      await surveyTable(
        rowsOf((i) => `topic ${i % 4}`),
        { columns },
      ),
    ).toEqual({ count: 2 });
    expect(
      await surveyTable(
        rowsOf((i) => String(i)),
        { columns },
      ),
    ).toEqual({ count: 2 });
  });
});

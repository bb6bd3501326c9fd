import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { isRollbookError } from "../base/errors.ts";
import type { LoggedRow } from "../learn/index.ts";
import { fromForeign } from "./foreign-row.ts";
import { readDecisions, toRoutingRow } from "./routing-jsonl.ts";
import { MetaTally } from "./routing-meta.ts";
import { RowIdentities } from "./row-identity.ts";

async function read(...lines: unknown[]): Promise<LoggedRow[]> {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-routing-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "rows.jsonl");
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const rows: LoggedRow[] = [];
  for await (const row of readDecisions(file)) rows.push(row);
  return rows;
}

const schema = new URL("../../schemas/rollbook.routing-row.v1.json", import.meta.url);
const isRoutingRow = new Ajv2020({ strict: true, strictTypes: false }).compile(
  JSON.parse(readFileSync(schema, "utf8")),
);

/** A row of a plain two-model log: no ids, no propensities, no candidates. */
const plain = {
  schema_version: 1,
  session_id: "s1",
  task_id: "t1",
  agent_role: "coder",
  timestamp: "2026-01-02T03:04:05Z",
  task_complexity_score: 0.4,
  primary_failure_count: 2,
  action_fallback: 1,
  primary_model: "small",
  fallback_model: "large",
  model_chosen: "large",
  reward: 0.75,
  terminal: true,
  reward_version: "reward_v1",
  data_source: "synthetic",
  state: { depth: 3 },
};

describe("routing rows", () => {
  test("of a plain two-model log are read: two candidates, an unknown propensity, features as fields", async () => {
    const [row] = await read(plain);
    expect(row).toMatchObject({ chosen: 1, propensity: null, reward: 0.75, source: "synthetic" });
    expect(row!.id).toMatch(/^sha256:/);
    expect(row!.candidates.map((one) => one.id)).toEqual(["small", "large"]);
    expect(row!.context.fields).toEqual({
      agent_role: "coder",
      task_complexity_score: 0.4,
      primary_failure_count: 2,
      depth: 3,
    });
  });

  test("read back as they were written", async () => {
    const row = fromForeign(
      { line: 3, action: 1, reward: undefined, propensity: 0.25, context: [["x", 2]], actions: 3 },
      { name: "log", source: "real", identities: new RowIdentities() },
    );
    expect(await read(toRoutingRow(row))).toEqual([row]);
    const tally = new MetaTally();
    tally.add(row);
    expect(tally.meta({ session: "s" })).toEqual({
      schema: "rollbook.routing-meta.v1",
      rows: 1,
      units: 1,
      candidates: 3,
      labelled: 0,
      with_propensity: 1,
      least_propensity: 0.25,
      by_source: { real: 1 },
      filters: { session: "s" },
      below_recommended: true,
      recommended: 1000,
    });
  });

  test("need no fallback model, and may have more than two candidates", async () => {
    const { fallback_model: _, primary_model: __, action_fallback: ___, ...rest } = plain;
    const candidates = ["small", "medium", "large"].map((id) => ({ id, selectable: true }));
    const row = { ...rest, state: { prompt: "Why?", candidates } };
    expect(isRoutingRow(row)).toBe(true);
    const [read3] = await read(row);
    expect(read3).toMatchObject({ chosen: 2, context: { prompt: "Why?", fields: {} } });
    expect(isRoutingRow(toRoutingRow(read3!))).toBe(true);
    const { fallback_model: ____, ...alone } = plain;
    expect(isRoutingRow(alone)).toBe(true);
    expect((await read(alone))[0]!.candidates.map(({ id }) => id)).toEqual(["small", "large"]);
  });

  test("fit the published JSON Schema, which refuses what the reader refuses", async () => {
    expect(isRoutingRow(plain)).toBe(true);
    for (const change of [{ propensity: 0 }, { reward: "1" }, { schema_version: 2 }, { model_chosen: "" }]) {
      expect(isRoutingRow({ ...plain, ...change }), JSON.stringify(change)).toBe(false);
      if (change.reward === undefined) await expect(read({ ...plain, ...change })).rejects.toThrow();
    }
  });

  test("give back what went in, columns of their own and chains of several decisions included", async () => {
    const [row] = await read(plain);
    const logged = { ...row!, id: "r/0/3", chain: "r/0/0" };
    expect(logged.context.fields).toMatchObject({ task_complexity_score: 0.4 });
    expect(toRoutingRow(logged)).toMatchObject({ task_complexity_score: 0.4, chain_id: "r/0/0" });
    expect(await read(toRoutingRow(logged))).toEqual([logged]);
  });

  test.each([
    ["names the wrong model", { ...plain, action_fallback: 0 }, "wrong model"],
    ["chose nobody", { ...plain, model_chosen: "huge" }, "not a selectable candidate"],
    ["has a propensity above 1", { ...plain, propensity: 1.5 }, "not in (0, 1]"],
    ["has a propensity of 0", { ...plain, propensity: 0 }, "not in (0, 1]"],
    ["has a reward that is no number", { ...plain, reward: "good" }, "not a finite number"],
    ["has no time", { ...plain, timestamp: "soon" }, "not a time"],
    ["is of a later version", { ...plain, schema_version: 2 }, "version"],
  ])("a row that %s stops with its line", async (_what, row, text) => {
    await expect(read({ ...plain, decision_id: "d" }, row)).rejects.toThrow(
      expect.objectContaining({ code: "bad-row", message: expect.stringContaining(text) }) as Error,
    );
    await expect(read({ ...plain, decision_id: "d" }, row)).rejects.toThrow("rows.jsonl:2");
  });

  test("junk in any place of a row is read as nothing else than before, or stops with its line", async () => {
    const whole = toRoutingRow(
      fromForeign(
        {
          ...{ line: 3, action: 1, reward: 0.5, propensity: 0.25, actions: 2, context: [["x", 2]] },
          candidates: [[["cost", 1]], [["cost", 2]]],
        },
        { name: "log", source: "real", identities: new RowIdentities() },
      ),
    );
    const terms = { quality: { value: 0.5, weight: 1 } };
    const row = { ...whole, state: { ...whole.state, terms } };
    Object.assign(row.state.candidates[0]!, { outcome: { reward: 1, terms }, reasons: ["cheap"] });
    const [known] = await read(row);
    const junk = fc.constantFrom<unknown>(
      null,
      7,
      -1,
      "text",
      true,
      [],
      [1],
      [null],
      {},
      { a: {} },
      { a: null },
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...pathsIn(row)), junk, async (path, value) => {
        const changed = withValue(row, path, value);
        try {
          const [, second] = await read({ ...row, decision_id: "first" }, changed);
          for (const { value: term, weight } of Object.values(second!.terms))
            expect([typeof term, typeof weight]).toEqual(["number", "number"]);
          for (const one of second!.candidates) expect(typeof one.id).toBe("string");
        } catch (error) {
          if (!isRollbookError(error, "bad-row")) throw error;
          expect(error.message).toContain("rows.jsonl:2");
        }
      }),
      { numRuns: 400 },
    );
    expect(known!.terms).toEqual(terms);
  });

  test.each([
    ["a number", 5],
    ["a list", [1, 2]],
    ["a term without a weight", { quality: { value: 1 } }],
    ["a term that is a text", { quality: "good" }],
  ])("state.terms that is %s stops with its line", async (_what, terms) => {
    const row = { ...plain, state: { candidates: [{ id: "large", selectable: true }], terms } };
    await expect(read({ ...plain, decision_id: "d" }, row)).rejects.toThrow(/rows\.jsonl:2: state\.terms/);
  });

  test("with one id twice are refused: outcomes are joined by id", async () => {
    const row = { ...plain, decision_id: "d" };
    await expect(read(row, row)).rejects.toThrow("already on line 1");
  });
});

type Path = readonly (string | number)[];

function pathsIn(value: unknown, path: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [path];
  const inner = Object.entries(value).flatMap(([key, each]) => pathsIn(each, [...path, key]));
  return path.length === 0 ? inner : [path, ...inner];
}

function withValue(whole: object, path: Path, value: unknown): object {
  const copy = structuredClone(whole);
  let at = copy as Record<string | number, unknown>;
  for (const key of path.slice(0, -1)) at = at[key] as Record<string | number, unknown>;
  at[path.at(-1)!] = value;
  return copy;
}

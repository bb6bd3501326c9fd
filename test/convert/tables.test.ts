/** The tables of `data export --format parquet` and `--format arrow`: pyarrow, DuckDB and polars read the values that
 *  `artifact ls` and `artifact show` print. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { python } from "../../scripts/python.mjs";
import * as requirement from "../../scripts/setup/python-readers.mjs";
import { writeArrowRows } from "../../src/convert/arrow/index.ts";
import { writeNewFile } from "../../src/convert/new-file.ts";
import { chatWire } from "../support/chat-rollouts.ts";
import { Cli, lines } from "../support/cli.ts";
import { describeNeeding } from "../support/needs.ts";
import { blocksOf } from "../support/page-examples.ts";
import { draftWire, stepWire, weightsOf } from "../support/shelf.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into rows of every table
type Row = any;

/** Prints the types and rows of each file, with times in milliseconds. Fails if the two readers differ. */
const PROGRAM = `
import json, sys
import duckdb, pyarrow as pa, pyarrow.parquet as pq
for path in sys.argv[1:]:
    table = pq.read_table(path)
    types = {name: str(table.schema.field(name).type) for name in table.column_names}
    times = [name for name in types if types[name].startswith("timestamp")]
    schema = pq.ParquetFile(path).schema
    for name in times:
        # polars takes the zone from the logical type alone.
        assert "is_from_converted_type=false" in str(schema.column(schema.names.index(name)).logical_type), name
        table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.int64()))
    replaced = ", ".join(f"epoch_ms({name}) AS {name}" for name in times)
    columns = f"* REPLACE ({replaced})" if times else "*"
    found = duckdb.connect(":memory:").execute(f"SELECT {columns} FROM read_parquet(?)", [path])
    names = [each[0] for each in found.description]
    rows = [dict(zip(names, row)) for row in found.fetchall()]
    assert rows == table.to_pylist(), "DuckDB and pyarrow differ"
    print(json.dumps(dict(types=types, rows=rows)))
`;

/** Prints the number of rows of each Arrow file. Fails unless pyarrow, DuckDB and polars give the types and values of
 *  the Parquet file. */
const ARROW_PROGRAM = `
import json, sys
import duckdb, polars as pl, pyarrow as pa, pyarrow.parquet as pq
for path in sys.argv[1:]:
    expected = pq.read_table(path + ".parquet")
    with pa.OSFile(path + ".arrow") as source:
        table = pa.ipc.open_file(source).read_all()
    table.validate(full=True)
    arrow_rows = table
    assert table.schema.equals(expected.schema), (table.schema, expected.schema)
    assert table.schema.metadata[b"rollbook"] == expected.schema.metadata[b"rollbook"]
    assert table.equals(expected), "pyarrow reads other values"
    assert pl.read_ipc(path + ".arrow").equals(pl.read_parquet(path + ".parquet")), "polars reads other values"
    kept = "read_parquet('" + path + ".parquet')"
    for one, other in [("arrow_rows", kept), (kept, "arrow_rows")]:
        found = duckdb.sql(f"SELECT count(*) FROM (SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other})")
        assert found.fetchall() == [(0,)], "DuckDB reads other values"
    print(table.num_rows)
`;

/** Prints the rows of an Arrow file and the rows of each of its batches. */
const BATCHES_PROGRAM = `
import json, sys
import pyarrow as pa
file = pa.ipc.open_file(sys.argv[1])
batches = [file.get_batch(i) for i in range(file.num_record_batches)]
for batch in batches:
    batch.validate(full=True)
print(json.dumps(dict(sizes=[each.num_rows for each in batches], rows=file.read_all().to_pylist())))
`;

function runPython(program: string, args: readonly string[]): string {
  const { stdout, stderr, status } = spawnSync(python, ["-c", program, ...args], { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
  return stdout;
}

const revision = { family: "writer", id: "writer-r1", digest: weightsOf("writer-r1") };
const unknownCall = {
  dialect: "other",
  model: "mystère 🙂",
  request: { messages: [], parameters: {} },
  response: { messages: [] },
};
const knownCall = {
  ...unknownCall,
  revision,
  response: { messages: [{ role: "assistant", content: "ok" }], finishReason: "length", status: 429 },
  usage: { promptTokens: 2 ** 40, completionTokens: 0, cachedTokens: 3 },
  costUsd: 1e-7,
  declaredLatencyMs: 12.5,
};
const unloggedStep = {
  reward: null,
  chosen: 1,
  propensity: 0.125,
  context: [1, -0.5],
  seen: { region: "eu", tokens: 7, urgent: true },
  candidates: ["small", "large"].map((id) => ({ id, selectable: true, reasons: [], probability: null })),
};

async function tabledBook(): Promise<Cli> {
  const cli = new Cli();
  await cli.ok("init");
  const chat = chatWire("r-chat");
  const again = { worker: "worker-b", attempt: 2, startedAtMs: 4000, endedAtMs: 5000 };
  const known = draftWire("r-known", {
    seed: (2n ** 64n - 1n).toString(),
    dataSource: "real",
    group: undefined,
    calls: [unknownCall, knownCall],
    scores: [
      { name: "solved", value: 0.1, weight: 3 },
      { name: "noted", value: -2, weight: 0 },
    ],
    streams: [
      stepWire({ step: unloggedStep }),
      stepWire({ family: "tools" }),
      ...(draftWire("").streams as object[]),
    ],
    ending: { kind: "failed", owner: "provider", message: 'down "now"\n' },
    envelope: {
      ...{ worker: "worker-a", startedAtMs: 1_700_000_000_123, endedAtMs: 1_700_000_001_000 },
      callTimes: [
        { startedAtMs: 1_700_000_000_200, durationMs: 100.5 },
        { startedAtMs: 1_700_000_000_400, firstByteMs: 0.25, durationMs: 300, delivery: "sent" },
      ],
    },
  });
  const wires = [chat, { ...chat, envelope: again }, known, draftWire("r-plain")];
  await cli.ok("artifact import - --no-sign", lines(...wires));
  await cli.ok("feedback r-plain --name accepted --value 0.25");
  return cli;
}

async function exportAll(cli: Cli): Promise<Record<"rollouts" | "calls" | "decisions", string>> {
  const file = (table: string) => join(cli.folder, `${table}.parquet`);
  for (const table of ["rollouts", "calls", "decisions"])
    await cli.ok(`data export --format parquet --table ${table} --out ${file(table)}`);
  return { rollouts: file("rollouts"), calls: file("calls"), decisions: file("decisions") };
}

/** The rows of a file, with the JSON of nested columns parsed, and the types of its columns. */
function read(files: readonly string[]): { types: Record<string, string>; rows: Row[] }[] {
  return runPython(PROGRAM, files)
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

const QUERY = "import duckdb, json, sys; print(json.dumps(duckdb.sql(sys.argv[1]).fetchall()))";

function query(folder: string, sql: string): unknown {
  const { stdout, stderr, status } = spawnSync(python, ["-c", QUERY, sql], { cwd: folder, encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
}

const parsed = (row: Row, ...names: string[]): Row => ({
  ...row,
  ...Object.fromEntries(names.map((name) => [name, JSON.parse(row[name] ?? "null")])),
});

await describeNeeding(requirement, "pyarrow, DuckDB and polars", () => {
  it("read rollouts, calls and decisions as `artifact ls` and `artifact show` print them", async () => {
    const cli = await tabledBook();
    const files = await exportAll(cli);
    const [rollouts, calls, decisions] = read([files.rollouts, files.calls, files.decisions]);
    const listed = await cli.json("artifact ls");
    const shown = new Map<string, Row>();
    // The tables hold the run that ended last.
    for (const { rolloutId } of listed)
      for (const run of await cli.json(`artifact show ${rolloutId}`))
        if (run.envelope.endedAtMs >= (shown.get(rolloutId)?.envelope.endedAtMs ?? 0))
          shown.set(rolloutId, run);

    expect(rollouts!.types).toMatchObject({
      ...{ rollout_id: "string", started_at: "timestamp[ms, tz=UTC]", score: "double", calls: "int64" },
    });
    const JSON_OF_ROLLOUTS = ["envelopes", "families", "levels", "models", "feedback"];
    const OTHERS = ["scores", "sampling", "ending_detail"];
    const found = rollouts!.rows.map((row) => parsed(row, ...JSON_OF_ROLLOUTS, ...OTHERS));
    expect(found).toEqual(
      listed.map((row: Row) => {
        const { seed, scores, sampling, ending, envelope, task, finalState } = shown.get(row.rolloutId);
        return {
          ...{ rollout_id: row.rolloutId, content: row.content, envelopes: row.envelopes },
          ...{ started_at: row.startedAtMs, ended_at: row.endedAtMs, experiment: row.experiment },
          ...{ worker: envelope.worker, attempt: envelope.attempt, environment: row.environment },
          ...{ task: row.task, task_digest: task.digest ?? null, task_title: row.taskTitle },
          ...{ group_id: row.group, data_source: row.dataSource, seed, sampling },
          ...{ ending: row.ending, ending_detail: ending, families: row.families, levels: row.levels },
          ...{ models: row.models, samples: row.samples, calls: row.calls, score: row.score, scores },
          ...{ feedback: row.feedback, final_state: finalState ?? null },
        };
      }),
    );
    expect(found.map((row) => [row.rollout_id, row.score, row.ended_at, row.attempt])).toEqual([
      ["r-known", 0.1 * 3, 1_700_000_001_000, 1],
      ["r-chat", 1, 5000, 2],
      ["r-plain", null, 1200, 1],
    ]);
    expect(found[0].seed).toBe("18446744073709551615");
    expect(found[2].feedback).toEqual([{ name: "accepted", value: 0.25 }]);

    expect(calls!.types).toMatchObject({ prompt_tokens: "int64", cost_usd: "double", duration_ms: "double" });
    const callRows = calls!.rows.map((row) => parsed(row, "parameters"));
    expect(callRows).toEqual(
      listed.flatMap(({ rolloutId, content }: Row) =>
        shown.get(rolloutId).calls.map((call: Row, index: number) => {
          const times = shown.get(rolloutId).envelope.callTimes?.[index] ?? {};
          return {
            ...{ rollout_id: rolloutId, content, call: index, dialect: call.dialect, model: call.model },
            digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
            ...{ family: call.revision?.family ?? null, revision: call.revision?.id ?? null },
            revision_digest: call.revision?.digest ?? null,
            ...{ status: call.response.status ?? null, finish_reason: call.response.finishReason ?? null },
            prompt_tokens: call.usage?.promptTokens ?? null,
            completion_tokens: call.usage?.completionTokens ?? null,
            cached_tokens: call.usage?.cachedTokens ?? null,
            cost_usd: call.costUsd ?? null,
            ...{ started_at: times.startedAtMs ?? null, first_byte_ms: times.firstByteMs ?? null },
            ...{ duration_ms: times.durationMs ?? null, delivery: times.delivery ?? null },
            declared_latency_ms: call.declaredLatencyMs ?? null,
            parameters: call.request.parameters,
            tools: null,
            ...{ request_messages: expect.any(String), response_messages: expect.any(String) },
          };
        }),
      ),
    );
    // A digest in the table leads to the message in the book.
    const [reply] = JSON.parse(callRows.find(({ status }) => status === 429).response_messages);
    expect(JSON.parse(await cli.ok(`cat ${reply}`))).toEqual({ role: "assistant", content: "ok" });

    const NESTED = ["candidates", "seen", "context", "shadow", "monte_carlo", "relaxed"];
    expect(decisions!.types).toMatchObject({ probability: "double", chosen: "string", step: "int64" });
    expect(decisions!.rows.map((row) => parsed(row, ...NESTED))).toEqual(
      listed.flatMap(({ rolloutId, content }: Row) =>
        shown.get(rolloutId).streams.flatMap((stream: Row, at: number) =>
          (stream.steps ?? []).map((step: Row, index: number) => ({
            ...{ decision_id: `${rolloutId}/${at}/${index}`, rollout_id: rolloutId, content },
            ...{ stream: at, step: index, family: stream.family, turn: step.turn, call: step.call ?? null },
            ...{ revision: step.revision.id, revision_digest: step.revision.digest, parent: null },
            ...{ policy: null, policy_digest: null, chosen: step.candidates[step.chosen].id },
            chosen_index: step.chosen,
            probability: step.candidates[step.chosen].probability ?? step.propensity,
            ...{ reward: step.reward, advantage: null, confidence: null, reason: null },
            ...{ error_before: null, error_after: null, candidates: step.candidates },
            ...{ seen: step.seen ?? null, context: step.context ?? null, shadow: null, monte_carlo: null },
            relaxed: null,
          })),
        ),
      ),
    );
    expect(decisions!.rows.map(({ probability, reward }) => [probability, reward])).toEqual([
      [0.125, null],
      [0.75, 1],
      [0.75, 0.5],
    ]);
  });

  it("read from Arrow files what they read from Parquet files", async () => {
    const cli = await tabledBook();
    const paths = ["rollouts", "calls", "decisions", "none"].map((name) => join(cli.folder, name));
    await exportAll(cli);
    for (const format of ["parquet", "arrow"])
      await cli.ok(`data export --format ${format} --table calls --session none --out ${paths[3]}.${format}`);
    for (const path of paths.slice(0, 3))
      await cli.ok(`data export --format arrow --table ${basename(path)} --out ${path}.arrow`);
    expect(runPython(ARROW_PROGRAM, paths).trim().split("\n")).toEqual(["3", "4", "3", "0"]);
  });

  it("read every value of an Arrow file with several batches", async () => {
    const path = join(mkdtempSync(join(tmpdir(), "rollbook-arrow-")), "rows.arrow");
    const cell = fc.record({
      text: fc.option(fc.string({ unit: "grapheme" })),
      whole: fc.option(fc.bigInt({ min: -(2n ** 53n), max: 2n ** 53n })),
      real: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true })),
    });
    const rows = fc.sample(cell, { numRuns: 100, seed: 7 });
    const groups = [rows.slice(0, 1), rows.slice(1, 9), rows.slice(9, 26), rows.slice(26)];
    await writeNewFile(path, async (file) => {
      const written = await writeArrowRows(
        {
          groups: (async function* () {
            yield* groups;
          })(),
          columns: [
            { name: "text", type: "text", value: ({ text }) => text },
            { name: "whole", type: "i64", value: ({ whole }) => whole },
            { name: "real", type: "f64", value: ({ real }) => real },
          ],
          metadata: {},
        },
        file,
      );
      expect(written).toBe(100);
    });
    const found = JSON.parse(runPython(BATCHES_PROGRAM, [path]));
    expect(found.sizes).toEqual([1, 8, 17, 74]);
    const plain = rows.map((row) => ({ ...row, whole: row.whole === null ? null : Number(row.whole) }));
    expect(found.rows).toEqual(plain);
  });

  it("run the query of the page, and read a table that filters leave empty", async () => {
    const cli = await tabledBook();
    await exportAll(cli);
    await cli.ok(
      `data export --format parquet --table calls --session none --out ${join(cli.folder, "none.parquet")}`,
    );
    const page = readFileSync(new URL("../../docs/see.md", import.meta.url), "utf8");
    const queries = blocksOf(page).filter(({ info }) => info === "sql");
    expect(queries).toHaveLength(1);
    expect(query(cli.folder, queries[0]!.text)).toEqual([
      ["mystère 🙂", 2, 1e-7, 200.25, 0.1 * 3],
      ["small-1", 2, 0.003, null, 1],
    ]);
    expect(query(cli.folder, "SELECT count(*), sum(cost_usd) FROM 'none.parquet'")).toEqual([[0, null]]);
    const chosen = "SELECT candidates ->> '$[0].id' FROM 'decisions.parquet' WHERE family = 'tools'";
    expect(query(cli.folder, chosen)).toEqual([["small"]]);
  });
});

describe("data export --format parquet", () => {
  const table = (name: string, flags: string, out: string) =>
    `data export --format parquet --table ${name} ${flags} --out ${out}`;

  it("keeps the rollouts, and of decisions the family, that the filters name", async () => {
    const cli = await tabledBook();
    const counted = async (name: string, flags: string) => {
      const out = join(cli.folder, `${name}${flags.replaceAll(/\W+/g, "-")}.parquet`);
      const [{ rows, rollouts }] = (await cli.json(table(name, flags, out))) as [Row];
      return [rollouts, rows];
    };
    expect(await counted("decisions", "--family tools")).toEqual([1, 1]);
    expect(await counted("decisions", "--family router")).toEqual([2, 2]);
    expect(await counted("calls", "--data-source real")).toEqual([1, 2]);
    expect(await counted("rollouts", "--session r-known")).toEqual([1, 1]);
    expect(await counted("rollouts", "--since 2020-01-01")).toEqual([1, 1]);
    expect(await counted("rollouts", "--until 2020-01-01")).toEqual([2, 2]);
  });

  it("refuses flags without effect and a file that exists, and leaves nothing half-written", async () => {
    const cli = await tabledBook();
    const out = join(cli.folder, "out.parquet");
    for (const flags of [
      "--format parquet",
      "--format arrow",
      "--format sft --table calls",
      "--format parquet --table calls --feedback accepted",
      "--format parquet --table calls --min-score 1",
      "--format parquet --table messages",
    ])
      expect([flags, (await cli.run(`data export ${flags} --out ${out}`)).code]).toEqual([flags, 2]);
    expect(existsSync(out)).toBe(false);
    await cli.ok(table("calls", "", out).replaceAll("  ", " "));
    const again = await cli.run(table("calls", "", out).replaceAll("  ", " "));
    expect([again.code, again.err]).toEqual([1, expect.stringContaining("already exists")]);
    expect(readdirSync(cli.folder).filter((name) => name.includes("partial"))).toEqual([]);
  });
});

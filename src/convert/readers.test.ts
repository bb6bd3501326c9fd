import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { readBetaPrior, thompsonPositions } from "../../bench/support/judge/beta-prior.ts";
import { toColumns } from "../../bench/support/judge/to-columns.ts";
import { readMulticlass } from "../../bench/support/judge/uci-multiclass.ts";
import { collect } from "../../test/support/collect.ts";
import { countCpuMs } from "../../test/support/cpu-time.ts";
import { rngFrom } from "../base/rng.ts";
import { readCsv } from "./csv-records.ts";
import { fromForeign } from "./foreign-row.ts";
import { readMappedTable } from "./mapped/mapped-table.ts";
import { readOpenBandit } from "./open-bandit.ts";
import { readRllibJson } from "./rllib-json.ts";
import { RowIdentities } from "./row-identity.ts";
import { readLines } from "./text-lines.ts";
import { readDsjson } from "./vowpal-dsjson.ts";
import { readVowpalAdf, readVowpalCb } from "./vowpal-text.ts";

const folder = mkdtempSync(join(tmpdir(), "rollbook-readers-"));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;

function fileOf(content: string | Uint8Array, name = "data"): string {
  const path = join(folder, `${files++}-${name}`);
  writeFileSync(path, content);
  return path;
}

describe("lines and records", () => {
  test("gzip is told by its bytes, not its name", async () => {
    const texts = (await collect(readLines(fileOf(gzipSync("a\nbé\n\nc"))))).map((line) => line.text);
    expect(texts).toEqual(["a", "bé", "", "c"]);
  });

  test("a truncated gzip and broken UTF-8 stop with the file and the place", async () => {
    const zipped = gzipSync(`${"row of text\n".repeat(5000)}`);
    await expect(collect(readLines(fileOf(zipped.subarray(0, zipped.length - 20))))).rejects.toMatchObject({
      code: "unreadable-file",
    });
    await expect(collect(readLines(fileOf(Buffer.from([97, 10, 0xff, 10]))))).rejects.toMatchObject({
      code: "unreadable-file",
    });
  });

  test("a small compressed file of very many blank lines stops with an error, however the blanks look", async () => {
    for (const blank of ["\n", "\r\n", "   \n", "\t\n\n"]) {
      const zipped = gzipSync(`a\n${blank.repeat(3_000_000 / blank.length)}b\n`);
      expect(zipped.byteLength).toBeLessThan(20_000);
      await expect(collect(readLines(fileOf(zipped)))).rejects.toMatchObject({
        code: "unreadable-file",
        message: expect.stringContaining("blank lines"),
      });
    }
    expect(await collect(readLines(fileOf(`a${"\n".repeat(1000)}b`)))).toHaveLength(1001);
  });

  test("a quoted field over very many lines is read once, not once for every line", async () => {
    const lines = Array.from({ length: 100_000 }, (_, i) => `${i} ""quoted""`).join("\n");
    const cpuMs = countCpuMs();
    const [record] = await collect(readCsv(fileOf(`x,"${lines}",y\nnext`)));
    expect(cpuMs()).toBeLessThan(5_000);
    expect(record!.fields).toEqual(["x", lines.replaceAll('""', '"'), "y"]);
  });

  test("CSV written by RFC 4180 comes back, whatever the fields hold", async () => {
    const field = fc.string({ unit: fc.constantFrom("a", ",", '"', "\n", " ", "é") });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(field, { minLength: 2, maxLength: 4 }), { minLength: 1 }),
        async (rows) => {
          const text = rows
            .map((row) => row.map((x) => `"${x.replaceAll('"', '""')}"`).join(","))
            .join("\r\n");
          expect((await collect(readCsv(fileOf(text)))).map((record) => record.fields)).toEqual(rows);
        },
      ),
      { numRuns: 50 },
    );
  });

  test("an unclosed quote names the line where it opened", async () => {
    await expect(collect(readCsv(fileOf('a,b\n1,"x\n2,y\n')))).rejects.toMatchObject({
      code: "bad-row",
      fields: { line: 2 },
    });
  });
});

describe("CSV with a column map", () => {
  const columns = {
    action: "model",
    reward: "score",
    propensity: "p",
    features: ["len", "lang"],
    episode: "run",
  };
  const options = { columns, actions: ["small", "large"] };

  test("keeps the prompt as text and a category as a field of the request", async () => {
    const file = fileOf("model,score,question,topic\n1,0.5,How far is it?,travel\n");
    const columns = { action: "model", reward: "score", prompt: "question", features: ["topic"] };
    const [decision] = await collect(readMappedTable(file, { columns }));
    const row = fromForeign(decision!, {
      name: "log",
      source: "real",
      identities: new RowIdentities(),
      actions: ["small", "large"],
    });
    expect(row.context).toEqual({ prompt: "How far is it?", fields: { topic: "travel" } });
  });

  test("reads names, categories, missing outcomes and propensities", async () => {
    const file = fileOf('run,model,score,p,len,lang\nr1,large,0.5,0.25,12,de\nr2,small,,,3,"en,us"\n');
    expect(await collect(readMappedTable(file, options))).toEqual([
      {
        line: 2,
        action: 1,
        actions: 2,
        reward: 0.5,
        propensity: 0.25,
        context: [["len", 12]],
        texts: { lang: "de" },
        episode: "r1",
      },
      {
        line: 3,
        action: 0,
        actions: 2,
        reward: undefined,
        propensity: undefined,
        context: [["len", 3]],
        texts: { lang: "en,us" },
        episode: "r2",
      },
    ]);
  });

  test.each([
    ["an unseen candidate", "r,huge,1,0.5,1,x", "huge"],
    ["a zero propensity", "r,small,1,0,1,x", "p 0"],
    ["a propensity above 1", "r,small,1,1.2,1,x", "p 1.2"],
    ["a NaN reward", "r,small,nan,0.5,1,x", "score"],
    ["a short row", "r,small,1", "3 fields"],
  ])("%s stops with file and line", async (_, row, message) => {
    const file = fileOf(`run,model,score,p,len,lang\nr,small,1,0.5,1,x\n${row}\n`, "log.csv");
    await expect(collect(readMappedTable(file, options))).rejects.toThrow(
      expect.objectContaining({
        code: "bad-row",
        fields: { file, line: 3 },
        message: expect.stringContaining(message),
      }),
    );
  });

  test("a missing column is told with the columns there are", async () => {
    await expect(collect(readMappedTable(fileOf("model,score\n"), options))).rejects.toThrow(
      '"p", "run", "len", "lang"',
    );
  });
});

describe("Open Bandit", () => {
  const head =
    ",timestamp,item_id,position,click,propensity_score,user_feature_0,user-item_affinity_0,user-item_affinity_1";

  test("items, positions, clicks, propensities, affinities", async () => {
    const file = fileOf(gzipSync(`${head}\n0,2019-11-24 00:01:03+00:00,1,3,1,0.25,abc,0.0,2.0\n`));
    expect(await collect(readOpenBandit(file))).toEqual([
      {
        line: 2,
        atMs: Date.UTC(2019, 10, 24, 0, 1, 3),
        action: 1,
        actions: 2,
        reward: 1,
        propensity: 0.25,
        position: 2,
        context: [
          ["user_feature_0=abc", 1],
          ["position=3", 1],
        ],
        candidates: [[["affinity", 0]], [["affinity", 2]]],
      },
    ]);
  });

  test("a propensity of 0 stops with the line", async () => {
    await expect(collect(readOpenBandit(fileOf(`${head}\n0,t,1,3,1,0.0,abc,0,2\n`)))).rejects.toMatchObject({
      fields: { line: 2 },
    });
  });

  test("the prior of one campaign, and shares that sum to 1 in each position", async () => {
    const file = fileOf(
      "all:\n  alpha:\n    - 9.0\n  beta:\n    - 9.0\nmen:\n  alpha:\n  - 1.0\n  - 8.0\n  - 2.0\n  beta:\n  - 5\n  - 2\n  - 2\n",
    );
    const prior = await readBetaPrior(file, "men");
    expect(prior).toEqual({ alpha: [1, 8, 2], beta: [5, 2, 2] });
    const shares = thompsonPositions(prior, { draws: 2000, rng: rngFrom(1) });
    for (const share of shares) expect(share.reduce((s, p) => s + p)).toBeCloseTo(1, 9);
    expect(shares[0]![1]).toBeGreaterThan(0.7);
    await expect(readBetaPrior(file, "women")).rejects.toThrow("women");
  });
});

describe("UCI multiclass", () => {
  test("commas or spaces, label last", async () => {
    const rows = await collect(readMulticlass(fileOf("1,2,0\n3 4 7\n")));
    expect(rows.map(({ features, label }) => [...features, label])).toEqual([
      [1, 2, "0"],
      [3, 4, "7"],
    ]);
  });

  test("a ragged row stops with its line", async () => {
    await expect(collect(readMulticlass(fileOf("1,2,0\n1,0\n")))).rejects.toMatchObject({
      fields: { line: 2 },
    });
  });
});

describe("Vowpal Wabbit text", () => {
  test("--cb: actions from 1, cost, probability, namespaces with weights", async () => {
    const file = fileOf("2:0.5:0.25 'tag|user:2 age:3 ok |w x\n1:-1:1 | plain:2\n");
    expect(await collect(readVowpalCb(file, { actions: 2 }))).toEqual([
      {
        line: 1,
        action: 1,
        actions: 2,
        reward: -0.5,
        propensity: 0.25,
        context: [
          ["user^age", 6],
          ["user^ok", 2],
          ["w^x", 1],
        ],
      },
      { line: 2, action: 0, actions: 2, reward: 1, propensity: 1, context: [["plain", 2]] },
    ]);
  });

  test("--cb: an action beyond the count, a zero probability and a missing label stop with the line", async () => {
    for (const bad of ["3:1:0.5 | x", "1:1:0 | x", "| x", "1:1:0.5 x"])
      await expect(
        collect(readVowpalCb(fileOf(`1:1:0.5 | x\n${bad}\n`), { actions: 2 })),
      ).rejects.toMatchObject({
        code: "bad-row",
        fields: { line: 2 },
      });
  });

  test("--cb_adf: shared line, candidates, and the labelled one chosen", async () => {
    const file = fileOf("shared |U u=T\n|A a=p\n0:-1:0.8 |A a=s\n\n|A a=x\n|A a=y\n\n0:2:0.5 |A b\n|A c\n");
    const rows = await collect(readVowpalAdf(file));
    expect(rows).toHaveLength(2);
    expect(rows[0]).toEqual({
      line: 1,
      action: 1,
      actions: 2,
      reward: 1,
      propensity: 0.8,
      context: [["U^u=T", 1]],
      candidates: [[["A^a=p", 1]], [["A^a=s", 1]]],
    });
    expect(rows[1]).toMatchObject({ line: 8, action: 0, reward: -2 });
  });
});

describe("dsjson", () => {
  const event = {
    _label_cost: -1,
    _label_probability: 0.25,
    _label_Action: 2,
    a: [2, 1],
    p: [0.25, 0.75],
    c: { user: { age: 7, name: "T", _x: 1 }, _multi: [{ id: "a" }, { id: "b", f: [{ hot: true }] }] },
  };

  test("label, distribution and flattened features", async () => {
    const [row] = await collect(readDsjson(fileOf(`${JSON.stringify(event)}\n`)));
    expect(row).toEqual({
      line: 1,
      action: 1,
      actions: 2,
      reward: 1,
      propensity: 0.25,
      distribution: Float64Array.of(0.75, 0.25),
      context: [
        ["user^age", 7],
        ["user^name=T", 1],
      ],
      candidates: [
        [["id=a", 1]],
        [
          ["id=b", 1],
          ["f^hot", 1],
        ],
      ],
    });
  });

  test("contradicting probabilities, dropped events and broken JSON stop with the line", async () => {
    const lines = [
      JSON.stringify({ ...event, _label_probability: 0.3 }),
      JSON.stringify({ ...event, pdrop: 0.5 }),
      JSON.stringify({ ...event, _label_Action: 3 }),
    ];
    for (const line of lines)
      await expect(collect(readDsjson(fileOf(`\n${line}\n`)))).rejects.toMatchObject({ fields: { line: 2 } });
    await expect(collect(readDsjson(fileOf("{\n")))).rejects.toMatchObject({ code: "bad-json" });
  });
});

describe("RLlib JSON", () => {
  const step = {
    eps_id: 5,
    obs: [0.5, -1],
    actions: 1,
    rewards: 2,
    dones: false,
    action_prob: 0.5,
    action_dist_inputs: [0, 0],
  };

  test("steps are counted within an episode, and an end by `dones` is not called terminal", async () => {
    const file = fileOf(
      [step, { ...step, dones: true }, { ...step, eps_id: 6, truncateds: true }]
        .map((x) => JSON.stringify(x))
        .join("\n"),
    );
    const rows = await collect(readRllibJson(file));
    expect(rows.map((row) => [row.episode, row.step, row.ending])).toEqual([
      ["5", 0, undefined],
      ["5", 1, "unknown"],
      ["6", 0, "truncated"],
    ]);
    expect(rows[0]).toMatchObject({
      action: 1,
      reward: 2,
      propensity: 0.5,
      distribution: Float64Array.of(0.5, 0.5),
    });
  });

  test("a batch of columns gives the same rows as single steps", async () => {
    const batch = {
      type: "SampleBatch",
      eps_id: [5, 5],
      obs: [
        [0.5, -1],
        [0.5, -1],
      ],
      actions: [1, 1],
      rewards: [2, 2],
      action_logp: [0, -1],
    };
    const rows = await collect(readRllibJson(fileOf(JSON.stringify(batch))));
    expect(rows.map((row) => [row.step, row.propensity])).toEqual([
      [0, 1],
      [1, expect.closeTo(Math.exp(-1), 15)],
    ]);
  });

  test("compressed columns are refused with the setting that avoids them", async () => {
    await expect(
      collect(readRllibJson(fileOf(JSON.stringify({ ...step, obs: "BCJNGGhA" })))),
    ).rejects.toThrow("compress_columns: []");
  });
});

describe("columns", () => {
  test("unlabelled rows are counted and left out, missing propensities become NaN", async () => {
    const columns = { action: "a", reward: "r", propensity: "p" };
    const file = fileOf("a,r,p\n0,1,0.5\n1,,0.5\n1,0,\n");
    const { log, unlabelled } = await toColumns(readMappedTable(file, { columns }), {
      target: () => Float64Array.of(0.25, 0.75),
    });
    expect(unlabelled).toBe(1);
    expect([...log.reward]).toEqual([1, 0]);
    expect([...log.behaviour]).toEqual([0.5, Number.NaN]);
    expect([...log.target]).toEqual([0.25, 0.75]);
  });

  test("a chain without episodes is an error, not a bandit log", async () => {
    const rows = readMappedTable(fileOf("a,r\n0,1\n"), { columns: { action: "a", reward: "r" } });
    await expect(toColumns(rows, { target: () => Float64Array.of(1), discount: 1 })).rejects.toMatchObject({
      code: "no-episodes",
    });
  });

  test("rows with differing candidate counts are refused", async () => {
    const file = fileOf("a,r\n0,1\n1,1\n");
    let width = 1;
    await expect(
      toColumns(readMappedTable(file, { columns: { action: "a", reward: "r" } }), {
        target: () => new Float64Array(++width),
      }),
    ).rejects.toMatchObject({ code: "ragged-rows" });
  });
});

import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { python } from "../../../scripts/python.mjs";
import * as requirement from "../../../scripts/setup/python-arrow.mjs";
import { fastFolder } from "../../../test/support/fast-folder.ts";
import { describeNeeding } from "../../../test/support/needs.ts";
import { anyBatch, sealBatch } from "../../../test/support/random-batches.ts";
import { plainRow } from "../../../test/support/read-exports.ts";
import { readBatch } from "../../keep/batch/index.ts";
import { writeNewFile } from "../new-file.ts";
import { exportBatch } from "./index.ts";
import { writeNpz } from "./write-npz.ts";

/** Reads every named file and prints, for each, its types and its rows in the form of `plainRow`. */
const PROGRAM = `
import json, math, sys
import numpy as np, pyarrow.parquet as pq
from safetensors import safe_open
TOKENS = ["ids", "logprobs", "mask", "turns", "rewards", "advantages"]

def npz(path):
    with np.load(path, allow_pickle=False) as file:
        columns = {name: file[name] for name in file.files}
    return json.loads(columns.pop("meta.json").tobytes()), columns

def safetensors(path):
    with safe_open(path, "np") as file:
        meta, columns = json.loads(file.metadata()["rollbook"]), {name: file.get_tensor(name) for name in file.keys()}
    for name in [name[:-5] for name in columns if name.endswith(".utf8")]:
        text, at = columns.pop(name + ".utf8").tobytes(), columns.pop(name + ".offsets")
        columns[name] = np.array([text[a:b].decode() for a, b in zip(at[:-1], at[1:])], dtype=object)
    return meta, columns

def flat_rows(meta, c):
    part = lambda name, r, kind, of: c[name][c[kind + "_start"][r]:][:c[kind + "_length"][r]]
    for r in range(len(c["content"])):
        seg = lambda name: part(name, r, "segments", None).tolist()
        row = dict(content=str(c["content"][r]), stream=int(c["stream"][r]), rolloutId=str(c["rollout_id"][r]),
            group=str(c["group"][r]) or None, weightBps=int(c["weight_bps"][r]), samples=int(c["samples"][r]),
            reward=float(c["reward"][r]),
            segments=[[a, b, meta["sources"][s]["id"], meta["sources"][s]["digest"]]
                for a, b, s in zip(seg("segment_start"), seg("segment_end"), seg("segment_source"))])
        places = range(c["row_start"][r], c["row_start"][r] + c["row_length"][r])
        if "ids" in c: row.update({name: part(name, r, "row", None).tolist() for name in TOKENS})
        else: row["steps"] = [dict(chosen=int(c["chosen"][i]), probability=float(c["probability"][i]),
            reward=float(c["rewards"][i]), advantage=float(c["advantages"][i]),
            candidates=[dict(id=str(c["candidate_names"][k]), probability=None if math.isnan(p) else p, selectable=bool(s))
                for k, p, s in zip(*(part(name, i, "candidates", None).tolist()
                    for name in ("candidate_ids", "candidate_probability", "candidate_selectable")))]) for i in places]
        yield row

def parquet_rows(table):
    for c in table.to_pylist():
        row = dict(content=c["content"], stream=c["stream"], rolloutId=c["rollout_id"], group=c["group"],
            weightBps=c["weight_bps"], samples=c["samples"], reward=c["reward"], segments=[list(each) for each in
                zip(c["segment_start"], c["segment_end"], c["segment_revision"], c["segment_digest"])])
        if "ids" in c: row.update({name: c[name] for name in TOKENS})
        else: row["steps"] = [dict(chosen=a, probability=b, reward=r, advantage=v, candidates=[
            dict(id=i, probability=p, selectable=s) for i, p, s in zip(*each)]) for a, b, r, v, *each in
            zip(*(c[name] for name in ("chosen", "probability", "rewards", "advantages", "candidate_ids",
                "candidate_probability", "candidate_selectable")))]
        yield row

for path in sys.stdin.read().split():
    if path.endswith(".parquet"):
        table = pq.read_table(path)
        meta = json.loads(table.schema.metadata[b"rollbook"])
        types, rows = {name: str(table.schema.field(name).type) for name in table.column_names}, parquet_rows(table)
    else:
        meta, columns = npz(path) if path.endswith(".npz") else safetensors(path)
        types, rows = {name: values.dtype.kind + str(values.dtype.itemsize) for name, values in columns.items()
            if values.dtype.kind not in "UO"}, flat_rows(meta, columns)
    print(json.dumps(dict(batch=meta["batch"], types=types, rows=list(rows))))
`;

const BATCHES = 60;

await describeNeeding(requirement, "Python", () => {
  const folder = fastFolder("batch-python");
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const expected: { batch: string; rows: unknown[] }[] = [];

  beforeAll(async () => {
    for (const [i, random] of fc.sample(anyBatch, { numRuns: BATCHES, seed: 3 }).entries()) {
      const { shelf, digest } = sealBatch(random);
      const batch = await readBatch(shelf.read, digest);
      for (const format of ["npz", "safetensors", "parquet"] as const)
        await exportBatch(batch, { format, out: join(folder, `${i}.${format}`) });
      await writeNewFile(join(folder, `${i}.zip64.npz`), (file) => writeNpz(batch, file, { zip64From: 0 }));
      expected.push({ batch: digest, rows: random.rows.map(plainRow) });
    }
  });

  type Found = { batch: string; types: Record<string, string>; rows: unknown[] };
  const found = new Map<string, Found[]>();

  /** One process per kind of file, because imports take longer than reading. */
  function read(suffix: string): Found[] {
    const known = found.get(suffix);
    if (known !== undefined) return known;
    const input = expected.map((_, i) => join(folder, `${i}.${suffix}`)).join("\n");
    const { stdout, stderr, status } = spawnSync(python, ["-c", PROGRAM], {
      input,
      encoding: "utf8",
      maxBuffer: 1 << 28,
    });
    expect([status, stderr]).toEqual([0, ""]);
    const lines = stdout.trimEnd().split("\n");
    found.set(
      suffix,
      lines.map((line) => JSON.parse(line)),
    );
    return found.get(suffix)!;
  }

  it.each([
    ["numpy", "npz"],
    ["numpy (ZIP64)", "zip64.npz"],
    ["safetensors", "safetensors"],
    ["pyarrow", "parquet"],
  ])("%s reads every value of every row", (_, suffix) => {
    const batches = read(suffix);
    expect(batches).toHaveLength(BATCHES);
    expect(batches.map(({ batch, rows }) => ({ batch, rows }))).toEqual(expected);
  });

  it("finds the columns in the types in which the batch holds them", () => {
    const typesOf = (suffix: string, has: string) => read(suffix).find(({ types }) => has in types)!.types;
    for (const suffix of ["npz", "safetensors"]) {
      expect(typesOf(suffix, "ids")).toMatchObject({
        ids: "u4",
        logprobs: "f4",
        mask: "u1",
        row_start: "i8",
      });
      expect(typesOf(suffix, "chosen")).toMatchObject({
        chosen: "u4",
        probability: "f8",
        candidate_ids: "u4",
      });
    }
    expect(typesOf("parquet", "ids")).toMatchObject({
      ids: "list<element: uint32 not null>",
      logprobs: "list<element: float not null>",
      mask: "list<element: uint8 not null>",
      group: "string",
    });
    expect(typesOf("parquet", "chosen")).toMatchObject({
      candidate_ids: "list<element: list<element: string not null> not null>",
      candidate_probability: "list<element: list<element: double> not null>",
    });
  });
});

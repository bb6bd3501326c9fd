"""Loads a batch that `rollbook batch export` wrote (npz, parquet or jsonl) and prints its totals: those of
`rollbook batch show BATCH --json`. Needs numpy for npz, pyarrow and numpy for parquet, nothing else for jsonl.
python read_batch.py FILE   or   meta, columns = load_batch("FILE")"""
import json, math, sys

def load_npz(path):  # flat arrays: row r is [row_start[r] : row_start[r] + row_length[r]]
    import numpy as np
    with np.load(path, allow_pickle=False) as file:
        columns = {name: file[name] for name in file.files}
    return json.loads(columns.pop("meta.json").tobytes()), columns

def load_parquet(path):  # one row per row of the batch; its lists become flat arrays here
    import pyarrow as pa, pyarrow.parquet as pq
    table = pq.read_table(path)
    columns = {}
    for name in table.column_names:
        values = table[name].combine_chunks()
        values = values.flatten() if pa.types.is_list(values.type) else values
        columns[name] = values.to_numpy(zero_copy_only=False)
    return json.loads(table.schema.metadata[b"rollbook"]), columns

def load_jsonl(path):  # the first line describes the batch, every other line is a row
    with open(path, encoding="utf8") as file:
        meta, *rows = map(json.loads, file)
    columns = {name: [row[name] for row in rows] for name in ("content", "rollout_id", "group", "samples", "reward")}
    for name in ("rewards", "advantages"):
        columns[name] = [x for row in rows for x in row.get(name) or [step[name[:-1]] for step in row["steps"]]]
    return meta, columns

def load_batch(path):
    return {"npz": load_npz, "parquet": load_parquet, "jsonl": load_jsonl}[path.rsplit(".", 1)[-1]](path)

if __name__ == "__main__":
    meta, columns = load_batch(sys.argv[1])
    total = lambda name: math.fsum(map(float, columns[name]))
    totals = {"rows": len(columns["content"]), "samples": int(total("samples")),
              "rewardSum": total("rewards"), "advantageSum": total("advantages")}
    for name, value in totals.items():  # the last digits of a sum of floats depend on the order
        assert math.isclose(value, meta["totals"][name], rel_tol=1e-9, abs_tol=1e-6), f"{name} is {value}, not {meta['totals'][name]}"
    print(json.dumps({"batch": meta["batch"], **totals}))

"""pyarrow, DuckDB, datasets, numpy and safetensors read the exported files."""

import duckdb
import numpy as np
import pyarrow.parquet as pq
from claims import FOLDER, claim, lines, versions
from datasets import load_dataset
from safetensors.numpy import load_file

versions("pyarrow", "duckdb", "datasets", "numpy", "safetensors")

for name in ("verl", "verl-agent-loop", "art", "batch.parquet"):
    path = str(FOLDER / name)
    table = pq.read_table(path)
    rows = duckdb.connect(":memory:").execute("SELECT count(*) FROM read_parquet(?)", [path]).fetchone()[0]
    claim(f"pyarrow and DuckDB read {name}", rows == table.num_rows > 0, rows=rows)

for name in ("trl-sft", "trl-dpo", "trl-kto", "trl-grpo", "trl-rollouts", "slime", "slime-prompts"):
    data = load_dataset("json", data_files=str(FOLDER / name), split="train")
    claim(f"datasets loads {name}", len(data) == len(lines(name)), rows=len(data), columns=data.column_names)

arrays = np.load(FOLDER / "batch.npz", allow_pickle=False)
tensors = load_file(FOLDER / "batch.safetensors")
samples = lines("slime")
claim("numpy and safetensors agree on the token ids", np.array_equal(arrays["ids"], tensors["ids"]), tokens=len(arrays["ids"]))
claim("as many tokens as the samples have", len(arrays["ids"]) == sum(len(each["tokens"]) for each in samples))

"""Loads a batch of `rollbook batch export` (npz, safetensors, parquet or jsonl) and prints its totals, which are those
of `rollbook batch show BATCH --json`. With a book, compares every value with the sealed batch. pip install
node_modules/rollbook/python, then: python read_batch.py FILE [BOOK]"""
import json
import sys

from rollbook import load_batch

batch = load_batch(sys.argv[1], book=sys.argv[2] if len(sys.argv) > 2 else None)
print(json.dumps({"batch": batch.digest, **batch.totals()}))

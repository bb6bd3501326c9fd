"""Python's zarr 3 as a contender of `npm run bench -- replay`.

In: one JSON command per line. Out: one JSON line per command: the seconds of the work itself, without process start,
parsing and clean-up, which the other contender does not pay either.
"""

import hashlib
import json
import shutil
import sys
import time
import warnings

warnings.simplefilter("ignore")
import numpy as np
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

COMPRESSORS = {
    "none": None,
    "zstd": [ZstdCodec(level=1)],
    "crc32c": [Crc32cCodec()],
    "shards": [ZstdCodec(level=1), Crc32cCodec()],
}
rng = np.random.default_rng(1)
data = None


def load(path, width):
    global data
    data = np.fromfile(path, dtype="<f4").reshape(-1, width)


def write(path, chunk_rows, shard_chunks, codec, digests=False):
    width = data.shape[1]
    shutil.rmtree(path, ignore_errors=True)
    start = time.perf_counter()
    array = zarr.create_array(
        path, shape=data.shape, chunks=(chunk_rows, width),
        shards=(chunk_rows * shard_chunks, width) if shard_chunks else None,
        dtype="f4", compressors=COMPRESSORS[codec], filters=None, fill_value=float("nan"),
    )
    array[:] = data
    if digests:
        for at in range(0, len(data), chunk_rows):
            hashlib.sha256(data[at : at + chunk_rows].data).digest()
    return time.perf_counter() - start


def read(path):
    array = zarr.open_array(path, mode="r")
    start = time.perf_counter()
    values = array[:]
    seconds = time.perf_counter() - start
    assert np.array_equal(values, data)
    return seconds


def read_columns(paths):
    arrays = [zarr.open_array(path, mode="r") for path in paths]
    start = time.perf_counter()
    values = [array[:] for array in arrays]
    return time.perf_counter() - start


def read_chunks(path):
    array = zarr.open_array(path, mode="r")
    rows, step = array.shape[0], array.chunks[0]
    start = time.perf_counter()
    for at in range(0, rows, step):
        array[at : at + step]
    return time.perf_counter() - start


def batches(path, size, count):
    array = zarr.open_array(path, mode="r")
    picks = [np.sort(rng.integers(0, array.shape[0], size)) for _ in range(count)]
    start = time.perf_counter()
    for pick in picks:
        array.oindex[pick]
    return (time.perf_counter() - start) / count


for line in sys.stdin:
    name, *arguments = json.loads(line)
    print(json.dumps(globals()[name](*arguments)), flush=True)

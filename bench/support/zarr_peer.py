"""Python's zarr 3 as a contender of `npm run bench -- replay`.

In: one JSON command per line. Out: one JSON line per command: wall-clock seconds and processor seconds of the work.
Excludes process start, parsing and clean-up, as for the other contender.
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
from numcodecs.zstd import Zstd
from zarr.codecs import Crc32cCodec, ZstdCodec

COMPRESSORS = {
    "none": None,
    "zstd": [ZstdCodec(level=1)],
    "crc32c": [Crc32cCodec()],
    "shards": [ZstdCodec(level=1), Crc32cCodec()],
}
rng = np.random.default_rng(1)
data = None


class Timed:
    """Use as `with Timed() as timed: work`; then `timed.seconds`."""

    def __enter__(self):
        self.start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        wall, cpu = self.start
        self.seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def load(path, width):
    global data
    data = np.fromfile(path, dtype="<f4").reshape(-1, width)


def write(path, chunk_rows, shard_chunks, codec, digests=False):
    width = data.shape[1]
    shutil.rmtree(path, ignore_errors=True)
    with Timed() as timed:
        array = zarr.create_array(
            path, shape=data.shape, chunks=(chunk_rows, width),
            shards=(chunk_rows * shard_chunks, width) if shard_chunks else None,
            dtype="f4", compressors=COMPRESSORS[codec], filters=None, fill_value=float("nan"),
        )
        array[:] = data
        if digests:
            for at in range(0, len(data), chunk_rows):
                hashlib.sha256(data[at : at + chunk_rows].data).digest()
    return timed.seconds


def read(path):
    array = zarr.open_array(path, mode="r")
    with Timed() as timed:
        values = array[:]
    assert np.array_equal(values, data)
    return timed.seconds


def read_columns(paths):
    arrays = [zarr.open_array(path, mode="r") for path in paths]
    with Timed() as timed:
        values = [array[:] for array in arrays]
    assert np.array_equal(values[0], data.reshape(-1)[: values[0].size])
    return timed.seconds


def read_chunks(path):
    array = zarr.open_array(path, mode="r")
    rows, step = array.shape[0], array.chunks[0]
    with Timed() as timed:
        for at in range(0, rows, step):
            array[at : at + step]
    return timed.seconds


def decode(path):
    paths = [f"{path}/c/{i}/0" for i in range(zarr.open_array(path, mode="r").nchunks)]
    frames = [open(each, "rb").read() for each in paths]
    codec = Zstd()
    with Timed() as timed:
        for frame in frames:
            codec.decode(frame)
    return timed.seconds


def batches(path, size, count):
    array = zarr.open_array(path, mode="r")
    picks = [np.sort(rng.integers(0, array.shape[0], size)) for _ in range(count)]
    with Timed() as timed:
        for pick in picks:
            array.oindex[pick]
    return {unit: seconds / count for unit, seconds in timed.seconds.items()}


for line in sys.stdin:
    name, *arguments = json.loads(line)
    print(json.dumps(globals()[name](*arguments)), flush=True)

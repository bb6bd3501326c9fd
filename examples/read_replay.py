"""Loads q_h of a replay store (segmented or plain) into numpy, checking every digest of the manifest.
Needs zarr 3 and numpy.   python read_replay.py STORE   or   q = load_q_h("STORE")"""
import hashlib, json, pathlib, sys
import numpy as np, zarr

def digest(tag, data):
    return "sha256:" + hashlib.sha256(tag.encode() + b"\0" + data).hexdigest()

def check_array(path, expected):  # metadata, then the chunks in order; the digest of an array binds both
    metadata = (path / "zarr.json").read_bytes()
    shape, grid = (lambda m: (m["shape"], m["chunk_grid"]["configuration"]["chunk_shape"]))(json.loads(metadata))
    rest = ["0"] * (len(shape) - 1)
    chunks = [path.joinpath("c", str(i), *rest) for i in range(-(-shape[0] // grid[0]))]
    parts = [digest("rollbook.zarr.metadata", metadata)]
    parts += [digest("rollbook.zarr.chunk", chunk.read_bytes()) for chunk in chunks]
    actual = digest("rollbook.zarr.array", b"".join(bytes.fromhex(part[7:]) for part in parts))
    assert actual == expected, f"{path}: content is {actual}, the manifest says {expected}"

def load_q_h(store):
    store = pathlib.Path(store)
    manifest = json.loads((store / "manifest.json").read_text("utf8"))
    assert manifest["tables"] == {"id": "rollbook.replay", "version": 1}, f"needs {manifest['needs']}"
    width, first, columns = max(s["maxCandidates"] for s in manifest["segments"]), dict.fromkeys(manifest["rows"], 0), {}
    for segment in manifest["segments"]:
        for path, expected in segment["arrays"].items():
            check_array(store / segment["path"] / path, expected)
        for name, array in zarr.open_group(store / segment["path"], mode="r")["q_h"].arrays():
            values = array[:]
            if "references" in array.attrs:  # rows of the segment become rows of the store
                values = np.where(values >= 0, values + first[array.attrs["references"]], values)
            if values.ndim == 2:  # segments may differ in their number of candidates
                pad = {"candidate": -1, "label": np.nan}.get(name, 0)
                values = np.pad(values, ((0, 0), (0, width - values.shape[1])), constant_values=pad)
            columns.setdefault(name, []).append(values)
        first = {table: first[table] + rows for table, rows in segment["rows"].items()}
    return {name: np.concatenate(parts) for name, parts in columns.items()}

if __name__ == "__main__":
    for name, values in sorted(load_q_h(sys.argv[1]).items()):
        print(f"{name:16} {str(values.dtype):8} {values.shape}")

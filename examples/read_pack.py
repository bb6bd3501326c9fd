"""Reads a book without Rollbook: checks every byte, and prints the digest, kind and length of every blob.
Usage: python3 read_pack.py BOOK"""
import glob, hashlib, json, os, struct, sys, zlib

def entries(path):
    data, at = open(path, "rb").read(), 0
    while at < len(data):
        magic, version, kind_len, length, offset, digest, crc = struct.unpack_from("<4sHHQQ32sI", data, at)
        assert magic == b"RBE1" and version == 1 and offset == at, f"{path} at {at}: no entry"
        assert crc == zlib.crc32(data[at : at + 56]), f"{path} at {at}: header checksum"
        start = at + (60 + kind_len + 1 + 7) // 8 * 8
        end = start + length
        tagged = data[start - kind_len - 1 : end]
        assert hashlib.sha256(tagged).digest() == digest, f"{path} at {at}: digest"
        at, after = (end + 7) // 8 * 8, end
        assert not any(data[offset + 60 : start - kind_len - 1] + data[after:at]), f"{path}: padding"
        yield digest.hex(), tagged[:kind_len].decode(), data[start:end]

book = sys.argv[1]
for path in sorted(glob.glob(os.path.join(book, "packs", "*.pack"))):
    found, pack = list(entries(path)), os.path.basename(path)[:-5]
    chain = hashlib.sha256(b"rollbook.pack-chain.v1\0" + b"".join(bytes.fromhex(e[0]) for e in found[:-1]))
    assert json.loads(found[-1][2]) == {"entries": len(found) - 1, "chain": "sha256:" + chain.hexdigest()}, path
    for digest, kind, payload in found[1:-1]:
        if kind == "rollbook.pack-large.v1":
            entry = json.loads(payload)
            digest, kind = entry["digest"][7:], entry["kind"]
            payload = open(os.path.join(book, "large", f"{pack}.{digest}.{kind}"), "rb").read()
            assert hashlib.sha256(kind.encode() + b"\0" + payload).hexdigest() == digest, path
        print(f"sha256:{digest} {kind} {len(payload)}")

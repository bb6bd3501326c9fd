"""Flips the lowest bit of one recorded log-probability in the packs of a book; prints its
place (docs/reference/store.md has the format)."""

import struct
import sys
from pathlib import Path

KIND = b"rollbook.column.f32\0"

for pack in sorted(Path(sys.argv[1]).rglob("*.pack")):
    content = bytearray(pack.read_bytes())
    at = content.find(KIND)
    while at >= 0:
        entry = content.rfind(b"RBE1", 0, at)
        (length,) = struct.unpack_from("<Q", content, entry + 8)
        start = at + len(KIND)
        values = struct.unpack_from(f"<{length // 4}f", content, start)
        negative = next((index for index, value in enumerate(values) if value < 0), None)
        if negative is not None:
            content[start + 4 * negative] ^= 1
            pack.write_bytes(content)
            print(f"{pack.name}, byte {start + 4 * negative}, which held {values[negative]}")
            sys.exit(0)
        at = content.find(KIND, at + 1)
sys.exit("no log-probability below 0 was found")

"""Prints each claim that holds as one line of JSON. A claim that does not hold ends the program with an error."""

import importlib.metadata
import json
import sys
from pathlib import Path

FOLDER = Path(sys.argv[1])


def versions(*names):
    print(json.dumps({"versions": {name: importlib.metadata.version(name) for name in names}}), flush=True)


def claim(text, holds, **figures):
    print(json.dumps({"claim": text, "holds": bool(holds), **figures}), flush=True)
    if not holds:
        sys.exit(f"does not hold: {text} {figures}")


def lines(name):
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]

"""rollbook-torch serve | train. Both are started by `rollbook run`; by hand they work alike."""

import argparse
import asyncio
import json
import sys
from pathlib import Path

from .refusal import Refusal


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="rollbook-torch", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve a model; prints its URL as a line of JSON and ends with its standard input")
    serve.add_argument("--port", type=int, default=0, help="0: a free port (default)")
    serve.add_argument("--max-batch", type=int, default=1024, help="prompts decoded at a time (default: 1024)")
    serve.add_argument("--gather-ms", type=float, default=2.0, help="ms without a new request before a batch begins (default: 2)")
    serve.add_argument("--load", action="append", default=[], metavar="REVISION=FOLDER", help="a checkpoint to serve at once")
    train = commands.add_parser("train", help="train steps: one request per line of standard input, one report per line out")
    train.add_argument("--request", type=Path, help="one request from this file instead")
    for each in (serve, train):
        each.add_argument("--device", default="auto", help="cpu, cuda, cuda:1 or auto (default)")
        each.add_argument("--threads", type=int, help="threads of torch on the CPU (default: torch's)")
    options = parser.parse_args(argv)
    try:
        return _serve(options) if options.command == "serve" else _train(options)
    except Refusal as refusal:
        print(f"rollbook-torch: {refusal.message}", file=sys.stderr)
        return 1


def _serve(options) -> int:
    from .server import ModelServer

    device = _device(options)
    server = ModelServer(device, options.max_batch, options.gather_ms)
    for each in options.load:
        revision, _, folder = each.partition("=")
        server.load(revision, Path(folder), None)
    asyncio.run(server.serve(options.port))
    return 0


def _train(options) -> int:
    from .trainer import Trainer

    trainer = Trainer(_device(options))
    if options.request is not None:
        print(json.dumps(trainer.step(json.loads(options.request.read_text()))))
        return 0
    print(json.dumps({"ready": trainer.device}), flush=True)
    for line in sys.stdin:
        try:
            reply = {"report": trainer.step(json.loads(line))}
        except Refusal as refusal:
            reply = refusal.to_json()
        except Exception as error:
            reply = Refusal("internal", f"{type(error).__name__}: {error}").to_json()
        print(json.dumps(reply), flush=True)
    return 0


def _device(options) -> str:
    import torch

    if options.threads is not None:
        torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = False
    if options.device != "auto":
        return options.device
    return "cuda" if torch.cuda.is_available() else "cpu"


if __name__ == "__main__":
    sys.exit(main())

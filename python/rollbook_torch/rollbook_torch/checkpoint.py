"""A checkpoint folder: config.json, model.safetensors and a tokenizer. A trained checkpoint also has
optimizer.safetensors and report.json. Writing uses a temporary folder and a rename, so no partial folder appears."""

import hashlib
import json
import os
import shutil
from pathlib import Path

from .refusal import Refusal

WEIGHTS = "model.safetensors"
OPTIMIZER = "optimizer.safetensors"
REPORT = "report.json"
SIDE_FILES = ("config.json", "characters.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
#: The kind under which a book hashes and stores weights of a language model.
WEIGHTS_KIND = b"rollbook.model-weights.v1"


def weights_digest(content) -> str:
    """The digest as the book computes it: SHA-256 over the kind, a zero byte and the bytes of the file."""
    return f"sha256:{hashlib.sha256(WEIGHTS_KIND + bytes(1) + content).hexdigest()}"


def load_model(folder: Path, device: str, weights: bytes | None = None, expected: str | None = None):
    """The model in float32. `weights`: the content of its file, if already read. `expected`: the required digest."""
    import torch
    from safetensors.torch import load
    from transformers import AutoConfig, AutoModelForCausalLM

    if weights is None:
        weights = read_weights(folder)
    if expected is not None:
        require_digest(folder / WEIGHTS, weights, expected)
    config = AutoConfig.from_pretrained(str(folder), local_files_only=True)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa", dtype=torch.float32).to(device)
    assign_weights(model, load(weights), folder)
    return model


def assign_weights(model, tensors: dict, where) -> None:
    """Copies weights into the existing tensors, so that optimizers and graphs stay valid."""
    import torch

    own = dict(model.named_parameters())
    missing, extra = sorted(own.keys() - tensors.keys()), sorted(tensors.keys() - own.keys())
    wrong = [name for name in own.keys() & tensors.keys() if own[name].shape != tensors[name].shape]
    if missing or extra or wrong:
        raise Refusal(
            "other-model",
            f"{where}: the weights are of another model: {len(missing)} tensors missing, {len(extra)} unknown, "
            f"{len(wrong)} of another shape (first: {(missing + extra + wrong)[0]}). Use weights of this config.json.",
        )
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(tensors[name])


def read_weights(folder: Path) -> bytes:
    try:
        return (folder / WEIGHTS).read_bytes()
    except OSError as error:
        raise Refusal("no-checkpoint", f"{folder / WEIGHTS} cannot be read: {error.strerror}.") from error


def load_tensors(folder: Path, expected: str, device: str) -> dict:
    """Only the weights of a folder, for an existing model."""
    from safetensors.torch import load

    weights = read_weights(folder)
    require_digest(folder / WEIGHTS, weights, expected)
    return {name: each.to(device) for name, each in load(weights).items()}


def require_digest(path: Path, content: bytes, expected: str) -> None:
    actual = weights_digest(content)
    if actual != expected:
        raise Refusal(
            "digest-mismatch",
            f"{path}: the weights hash to {actual}, the revision says {expected}. Restore the file from the book.",
        )


def save_tensors(tensors: dict, metadata: dict | None = None) -> bytes:
    from safetensors.torch import save

    return save({name: each.detach().contiguous().cpu() for name, each in tensors.items()}, metadata)


def write_folder(out: Path, files: dict[str, bytes], side_files_of: Path) -> None:
    temp = out.with_name(f"{out.name}.tmp-{os.getpid()}")
    shutil.rmtree(temp, ignore_errors=True)
    temp.mkdir(parents=True)
    for name in SIDE_FILES:
        if (side_files_of / name).exists():
            shutil.copyfile(side_files_of / name, temp / name)
    for name, content in files.items():
        (temp / name).write_bytes(content)
    temp.rename(out)


def to_json(value) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()

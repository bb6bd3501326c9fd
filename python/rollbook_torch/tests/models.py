"""A random model of a few thousand parameters: python models.py FOLDER SEED writes the model."""

import sys
from pathlib import Path

import torch
from batches import SYMBOLS
from rollbook_torch import checkpoint as files
from transformers import LlamaConfig, LlamaForCausalLM


def write_model(folder: Path, seed: int) -> str:
    """Writes a random model with its tokenizer. Returns the digest of its weights."""
    torch.manual_seed(seed)
    shape = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2)
    config = LlamaConfig(vocab_size=15, max_position_embeddings=64, tie_word_embeddings=False, **shape)
    folder.mkdir(parents=True)
    config.save_pretrained(folder)
    weights = files.save_tensors(dict(LlamaForCausalLM(config).float().named_parameters()))
    (folder / files.WEIGHTS).write_bytes(weights)
    (folder / "characters.json").write_bytes(SYMBOLS)
    return files.weights_digest(weights)


if __name__ == "__main__":
    print(write_model(Path(sys.argv[1]), int(sys.argv[2])))

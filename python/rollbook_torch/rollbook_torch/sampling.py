"""Draws tokens from the seed of each request, independently of the rest of the batch.

The uniform number of a draw is a function of only seed and position (SplitMix64). So the same request draws the same
tokens in any batch, if the arithmetic of the device gives the same logits.
"""

import numpy as np
import torch

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def uniforms(seeds: np.ndarray, position: int) -> np.ndarray:
    """One number in [0, 1) per seed."""
    with np.errstate(over="ignore"):
        z = seeds + _GOLDEN * np.uint64(position + 1)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) / float(1 << 53)


def sampling_logprobs(logits, temperature, top_p, top_k):
    """Log-probabilities of the sampling distribution, after temperature and filters.

    The settings are columns, one value per row. With temperature 0 the most likely token has probability 1."""
    greedy = temperature <= 0
    scaled = logits.float() / torch.where(greedy, torch.ones_like(temperature), temperature)[:, None]
    if bool((top_k > 0).any()) or bool((top_p < 1).any()):
        scaled = _filtered(scaled, top_p, top_k)
    logprobs = torch.log_softmax(scaled, dim=-1)
    if bool(greedy.any()):
        best = torch.full_like(logprobs, float("-inf"))
        best.scatter_(1, logprobs.argmax(dim=-1, keepdim=True), 0.0)
        logprobs = torch.where(greedy[:, None], best, logprobs)
    return logprobs


def _filtered(scaled, top_p, top_k):
    ordered, order = scaled.sort(dim=-1, descending=True)
    rank = torch.arange(scaled.shape[-1], device=scaled.device)[None, :]
    drop = (top_k[:, None] > 0) & (rank >= top_k[:, None])
    before = torch.softmax(ordered, dim=-1).cumsum(dim=-1) - torch.softmax(ordered, dim=-1)
    drop |= before >= top_p[:, None]
    drop[:, 0] = False
    return torch.full_like(scaled, float("-inf")).scatter(1, order, ordered.masked_fill(drop, float("-inf")))


def draw(logprobs, uniform):
    """The first token whose cumulative probability exceeds the number; the last possible token if none does."""
    probabilities = logprobs.double().exp()
    cumulative = probabilities.cumsum(dim=-1)
    passed = cumulative > (uniform[:, None] * cumulative[:, -1:])
    return passed.int().argmax(dim=-1)

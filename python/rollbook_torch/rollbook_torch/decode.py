"""Decodes requests together, with a KV cache. In: prompts as ids with their sampling. Out: ids and log-probabilities."""

from dataclasses import dataclass, field

import numpy as np
import torch

from .refusal import Refusal, is_out_of_memory
from .sampling import draw, sampling_logprobs, uniforms


@dataclass
class Prompt:
    ids: list[int]
    seed: int
    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish: str = "length"


@torch.inference_mode()
def decode(model, prompts: list[Prompt], pad: int, eos: int | None) -> None:
    """Fills tokens, logprobs and finish of every prompt. Splits a batch that does not fit into memory in two."""
    try:
        _decode(model, prompts, pad, eos)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if len(prompts) == 1:
            raise Refusal(
                "out-of-memory",
                f"one prompt of {len(prompts[0].ids)} tokens and {prompts[0].max_tokens} new ones does not fit into the "
                "memory of the device. Lower max_tokens, or serve a smaller model.",
            ) from error
        half = len(prompts) // 2
        for part in (prompts[:half], prompts[half:]):
            for each in part:
                each.tokens, each.logprobs, each.finish = [], [], "length"
            decode(model, part, pad, eos)


def _decode(model, prompts: list[Prompt], pad: int, eos: int | None) -> None:
    from transformers import DynamicCache

    device = model.device
    width = max(len(each.ids) for each in prompts)
    padded = np.full((len(prompts), width), pad, dtype=np.int64)
    mask = np.zeros((len(prompts), width), dtype=np.int64)
    for row, each in enumerate(prompts):
        padded[row, width - len(each.ids) :] = each.ids
        mask[row, width - len(each.ids) :] = 1
    ids, attention = torch.from_numpy(padded).to(device), torch.from_numpy(mask).to(device)
    positions = (attention.cumsum(dim=-1) - 1).clamp(min=0)
    column = lambda name: torch.tensor([getattr(each, name) for each in prompts], device=device)
    temperature, top_p, top_k = column("temperature").float(), column("top_p").float(), column("top_k")
    seeds = np.array([each.seed % (1 << 64) for each in prompts], dtype=np.uint64)
    last = positions[:, -1:]
    cache = DynamicCache(config=model.config)
    steps = max(each.max_tokens for each in prompts)
    drawn, drawn_logprobs = [], []
    ended = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    limit = column("max_tokens")
    for step in range(steps):
        out = model(
            input_ids=ids,
            attention_mask=attention,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logprobs = sampling_logprobs(out.logits[:, -1], temperature, top_p, top_k)
        uniform = torch.from_numpy(uniforms(seeds, step)).to(device)
        token = draw(logprobs, uniform)
        drawn.append(token)
        drawn_logprobs.append(logprobs.gather(1, token[:, None])[:, 0])
        if eos is not None:
            ended = ended | (token == eos)
        ended = ended | (limit <= step + 1)
        if step + 1 == steps or bool(ended.all()):
            break
        ids = token[:, None]
        last = last + 1
        positions = last
        attention = torch.cat([attention, torch.ones_like(ids)], dim=1)
    _fill(prompts, torch.stack(drawn, 1).cpu().numpy(), torch.stack(drawn_logprobs, 1).cpu().numpy(), eos)


def _fill(prompts: list[Prompt], tokens: np.ndarray, logprobs: np.ndarray, eos: int | None) -> None:
    for row, each in enumerate(prompts):
        own = tokens[row, : each.max_tokens].tolist()
        if eos is not None and eos in own:
            own = own[: own.index(eos) + 1]
            each.finish = "stop"
        each.tokens = own
        each.logprobs = [min(0.0, value) for value in logprobs[row, : len(own)].tolist()]

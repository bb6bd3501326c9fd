"""Compares recorded with recomputed log-probabilities. If they differ, names the layer of the stack to suspect."""

import numpy as np

from .refusal import Refusal

#: Temperatures that a sampler may have used although the trainer has another.
_TEMPERATURES = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.5, 2.0)


def compare(recorded: np.ndarray, recomputed: np.ndarray) -> dict:
    """Differences over sampled tokens: their number, the largest and the mean."""
    difference = np.abs(recorded - recomputed)
    if difference.size == 0:
        return {"tokens": 0, "largest": 0.0, "mean": 0.0}
    return {"tokens": int(difference.size), "largest": float(difference.max()), "mean": float(difference.mean())}


def require_agreement(found: dict, tolerance: float, suspect) -> None:
    """Refuses a difference over `tolerance`. Calls `suspect` only then, because it recomputes."""
    if found["largest"] <= tolerance:
        return
    raise Refusal(
        "logprob-mismatch",
        f"recorded and recomputed log-probabilities differ by {found['largest']:.3g} (mean {found['mean']:.3g}) over "
        f"{found['tokens']} tokens; the tolerance is {tolerance:g}. Suspect {suspect()}. Nothing was trained.",
        **found,
    )


def suspect_layer(*, rows, logits_of, temperature: float, tolerance: float) -> str:
    """Tests the possible causes in turn on a few rows. `rows`: (ids, mask, recorded logprobs). `logits_of(ids)`: the
    model's logits for every position of one row."""
    rows = rows[:32]
    scores = [(logits_of(ids), ids, mask.astype(bool), recorded) for ids, mask, recorded in rows]

    def gap(at_temperature: float, shift: int = 0, first: bool = False) -> float:
        gaps = []
        for logits, ids, mask, recorded in scores:
            places = np.flatnonzero(mask)
            places = places[:1] if first else places
            rows_of = places - 1 + shift
            places = places[(rows_of >= 0) & (rows_of < len(logits))]
            if len(places) > 0:
                own = _log_softmax(logits[places - 1 + shift], at_temperature)
                gaps.append(np.abs(own[np.arange(len(places)), ids[places]] - recorded[places]).max())
        return max(gaps, default=np.inf)

    for other in _TEMPERATURES:
        if other != temperature and gap(other) <= tolerance:
            return (
                f"the sampler: the recorded values fit temperature {other:g}, the trainer was told {temperature:g}. "
                "Give learner and agent the same temperature"
            )
    for shift in (-1, 1):
        if gap(temperature, shift) <= tolerance:
            return f"the alignment of tokens: the recorded values fit the place {shift:+d}. Check the chat template and the prompt ids"
    kept = [
        recorded[mask] - _log_softmax(logits[np.flatnonzero(mask) - 1], temperature)[np.arange(mask.sum()), ids[mask]]
        for logits, ids, mask, recorded in scores
    ]
    if all((each > -tolerance).all() for each in kept):
        return "filters of the sampler (top_p, top_k): every recorded value is at least the model's. Sample without filters"
    if gap(temperature, first=True) <= tolerance:
        return "the KV cache or the positions of the server: the first token of each reply fits, later ones do not"
    return "the weights: the server answered with other ones than the revision that was recorded, or in another precision"


def _log_softmax(logits: np.ndarray, temperature: float) -> np.ndarray:
    if temperature <= 0:
        best = np.full_like(logits, -np.inf)
        best[np.arange(len(logits)), logits.argmax(axis=-1)] = 0.0
        return best
    scaled = logits / temperature
    shifted = scaled - scaled.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))

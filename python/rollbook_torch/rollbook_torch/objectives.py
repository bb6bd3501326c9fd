"""Objectives that a step minimizes. Pure functions of log-probabilities. Every tensor is rows × positions, zero where
`mask` is 0.

GRPO and RLOO differ only in the advantages, which the sealed batch holds (mean-std, leave-one-out). The ratio of a
fresh row is relative to the *recorded* log-probabilities. Older weights sampled a stale row. Its ratio is relative to
the weights at the start of the step. Its loss is scaled by the truncated importance weight between the two.
"""

import torch


def clipped_objective(new, recorded, start, *, advantages, mask, stale, clip, clip_high, cap):
    """The loss per token, and the values to report: ratio, approximate KL divergence, share of clipped tokens."""
    basis = torch.where(stale[:, None], start, recorded)
    weight = torch.where(stale[:, None], (start - recorded).exp().clamp(max=cap), torch.ones_like(start))
    ratio = ((new - basis) * mask).exp()
    held = ratio.clamp(1 - clip, 1 + clip_high)
    loss = -weight * torch.minimum(ratio * advantages, held * advantages) * mask
    log_ratio = ((new - basis) * mask).detach()
    kl = ((log_ratio.exp() - 1 - log_ratio) * mask).sum()
    clipped = ((ratio.detach() != held.detach()) * mask).sum()
    return loss, {"kl": kl, "clipped": clipped}


def imitation_objective(new, *, rewards, mask):
    """Raises the likelihood of the rewarded rows."""
    chosen = mask * (rewards > 0)[:, None]
    return -new * chosen, chosen

"""miles-rl's Sample and Dataset, which are slime's, read samples and prompts; the torch file comes back unchanged."""

import torch
from claims import FOLDER, claim, lines, versions
from miles.utils.types import Sample
from slime_samples import post_process_rewards, read, write

versions("miles-rl", "torch")

target, back = FOLDER / "rollout_0.pt", FOLDER / "back.jsonl"
write(FOLDER / "slime", target, 0)
loaded = torch.load(target, weights_only=False)
samples = [Sample.from_dict(each) for each in loaded["samples"]]
for sample in samples:
    sample.validate()
claim("Sample.from_dict and validate take every sample", len(samples) == len(lines("slime")), samples=len(samples))
read(target, back)
claim("the torch file gives back the same samples", lines("back.jsonl") == lines("slime"))


class Arguments:
    reward_key = None
    grpo_std_normalization = True


samples[0].remove_sample, samples[0].reward = True, None
raw, rewards = post_process_rewards(Arguments, samples)
group = [reward for sample, reward in zip(samples, rewards) if sample.group_index == samples[0].group_index]
claim("a removed sample has no weight in its group", rewards[0] == 0 and abs(sum(group)) < 1e-5, group=group)

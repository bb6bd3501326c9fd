"""Sample and Dataset of miles-rl, which are slime's, read samples and prompts. The torch file reads back unchanged."""

import shutil

import torch
from claims import FOLDER, claim, lines, versions
from miles.utils.data import Dataset
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

rows = FOLDER / "prompts.jsonl"
shutil.copyfile(FOLDER / "slime-prompts", rows)
dataset = Dataset(str(rows), None, None, None, prompt_key="prompt", label_key="label")
read_back = [(each.prompt, each.label, each.metadata) for each in (dataset[index] for index in range(len(dataset)))]
written = [(each["prompt"], each["label"], each["metadata"]) for each in lines("slime-prompts")]
claim("Dataset reads prompt, label and metadata of every prompt row", read_back == written, rows=len(written))


class Arguments:
    reward_key = None
    grpo_std_normalization = True


samples[0].remove_sample, samples[0].reward = True, None
raw, rewards = post_process_rewards(Arguments, samples)
group = [reward for sample, reward in zip(samples, rewards) if sample.group_index == samples[0].group_index]
claim("a removed sample has no weight in its group", rewards[0] == 0 and abs(sum(group)) < 1e-5, group=group)

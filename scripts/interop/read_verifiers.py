"""verifiers reads the episodes with its own classes; branches give the exact tokens."""

import shutil

from claims import FOLDER, claim, lines, versions
from verifiers.v1.configs.agent import WireAgentConfig
from verifiers.v1.state import State
from verifiers.v1.task import WireTaskData
from verifiers.v1.trace import Trace
from verifiers.v1.utils.trace_store import TRACES_FILE, read_episodes, write_episode

versions("verifiers")

folder = FOLDER / "run"
folder.mkdir()
shutil.copy(FOLDER / "verifiers", folder / TRACES_FILE)
episodes = read_episodes(folder, Trace[WireTaskData, State, WireAgentConfig])
samples = {each["session_id"]: each for each in lines("slime")}
claim("read_episodes takes every episode", len(episodes) == len(samples), episodes=len(episodes))
for episode in episodes:
    (trace,) = episode.traces
    (branch,) = trace.branches
    sample = samples[trace.id]
    first = len(sample["tokens"]) - sample["response_length"]
    assert branch.token_ids == sample["tokens"], trace.id
    assert branch.sampled_mask == [False] * first + [each == 1 for each in sample["loss_mask"]], trace.id
    assert branch.logprobs == [0.0] * first + sample["rollout_log_probs"], trace.id
    assert trace.reward == sample["reward"], trace.id
claim("branches have the ids, masks, log-probabilities and rewards of the batch", True, traces=len(episodes))
again = FOLDER / "again"
again.mkdir()
for episode in episodes:
    write_episode(again, episode)
(again / TRACES_FILE).rename(FOLDER / "rewritten.jsonl")
claim("verifiers writes them again", len(lines("rewritten.jsonl")) == len(episodes))

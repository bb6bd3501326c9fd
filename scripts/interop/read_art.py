"""ART reads the trajectory groups."""

from art.utils.trajectory_logging import read_trajectory_groups_parquet
from claims import FOLDER, claim, lines, versions

versions("openpipe-art", "duckdb", "pyarrow")

path = (FOLDER / "art").rename(FOLDER / "art.parquet")
groups = read_trajectory_groups_parquet(path)
samples = lines("slime")
rewards = {}
for sample in samples:
    rewards.setdefault(sample["group_index"], []).append(sample["reward"])
claim("read_trajectory_groups_parquet gives the groups of the batch", len(groups) == len(rewards), groups=len(groups))
found = [[trajectory.reward for trajectory in group.trajectories] for group in groups]
claim("with the rewards of the batch", found == list(rewards.values()))
first = groups[0].trajectories[0]
claim("with messages and provenance", [m["role"] for m in first.messages()] == ["system", "user", "assistant"] and first.metadata["content"].startswith("sha256:"))

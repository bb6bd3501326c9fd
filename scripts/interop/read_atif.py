"""Harbor's models, which forbid unknown fields, validate the trajectories."""

from claims import claim, lines, versions
from harbor.models.trajectories import Trajectory

versions("harbor", "pydantic")

rows = lines("atif")
trajectories = [Trajectory.model_validate(row) for row in rows]
claim("Trajectory.model_validate takes every trajectory", len(trajectories) > 0, trajectories=len(trajectories))
claim("and writes the same JSON", all(each.to_json_dict() == row for each, row in zip(trajectories, rows)))
samples = {each["session_id"]: each for each in lines("slime")}
for each in trajectories:
    sample, metrics = samples[each.session_id], each.steps[-1].metrics
    assert metrics.prompt_token_ids + metrics.completion_token_ids == sample["tokens"], each.session_id
    assert metrics.logprobs == sample["rollout_log_probs"], each.session_id
claim("steps have the ids and log-probabilities of the batch", True)

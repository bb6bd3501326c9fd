"""Open Bandit Pipeline behind a pipe: reads columns from a folder, then answers every line with estimates or
seconds."""
import json
import sys
import time
import types
from importlib.machinery import ModuleSpec


class Unused(types.ModuleType):
    """Replaces torch, which obp imports for its neural policy learners. The estimators measured here never use it."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return sys.modules.get(f"{self.__name__}.{name}") or type(name, (object,), {})


for name in ["torch", "torch.nn", "torch.nn.functional", "torch.optim", "torch.utils", "torch.utils.data"]:
    module = Unused(name)
    module.__spec__ = ModuleSpec(name, None)
    module.__path__ = []
    sys.modules[name] = module

import numpy as np  # noqa: E402
import obp  # noqa: E402
from obp.ope import (  # noqa: E402
    DirectMethod,
    DoublyRobust,
    DoublyRobustWithShrinkage,
    InverseProbabilityWeighting,
    OffPolicyEvaluation,
    SelfNormalizedInverseProbabilityWeighting,
    SwitchDoublyRobust,
)

folder = sys.argv[1]
settings = json.load(open(f"{folder}/settings.json"))
rows, actions = settings["rows"], settings["actions"]
column = lambda name, dtype=np.float64: np.fromfile(f"{folder}/{name}", dtype=dtype)  # noqa: E731
feedback = dict(
    n_rounds=rows,
    n_actions=actions,
    action=column("chosen", np.int32).astype(int),
    position=None,
    reward=column("reward"),
    pscore=column("behaviour"),
    context=np.zeros((rows, 1)),
)
target = column("target").reshape(rows, actions, 1)
predictions = column("predictions").reshape(rows, actions, 1)
estimators = [
    InverseProbabilityWeighting(estimator_name="IPS"),
    SelfNormalizedInverseProbabilityWeighting(estimator_name="SNIPS"),
    DirectMethod(estimator_name="DM"),
    DoublyRobust(estimator_name="DR"),
    SwitchDoublyRobust(lambda_=settings["switch"], estimator_name="Switch-DR"),
    DoublyRobustWithShrinkage(lambda_=settings["shrinkage"], estimator_name="DRos"),
]

print(json.dumps({"version": obp.__version__, "numpy": np.__version__}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    chosen = [e for e in estimators if e.estimator_name in request["estimators"]]
    ope = OffPolicyEvaluation(bandit_feedback=feedback, ope_estimators=chosen)
    start = time.perf_counter()
    points = ope.estimate_policy_values(target, predictions)
    ope.estimate_intervals(target, predictions, n_bootstrap_samples=request["replicates"], random_state=1)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "points": {k: float(v) for k, v in points.items()}}), flush=True)

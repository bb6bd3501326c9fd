"""Steps with a model of a few thousand parameters on the CPU. Needs torch and transformers."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import torch
from batches import write_batch
from models import write_model
from rollbook_torch import checkpoint as files
from rollbook_torch.decode import Prompt, decode
from rollbook_torch.refusal import Refusal
from rollbook_torch.server import KEPT_REVISIONS, ModelServer
from rollbook_torch.trainer import Trainer

torch.set_num_threads(1)


def sampled_rows(folder: Path, source: str, *, count=32, temperature=1.0) -> list[dict]:
    """Samples groups of 8 from the model; the reward is 1 if the first token is even."""
    model = files.load_model(folder, "cpu").eval()
    prompts = [Prompt(ids=[1, 3 + index // 8 % 10, 13, 5, 14], seed=index, max_tokens=4, temperature=temperature) for index in range(count)]
    decode(model, prompts, 0, 2)
    rewards = np.array([each.tokens[0] % 2 for each in prompts], dtype=float)
    rows = []
    for index, each in enumerate(prompts):
        group = rewards[index // 8 * 8 : index // 8 * 8 + 8]
        rows.append(
            {
                "ids": each.ids + each.tokens,
                "mask": [0] * len(each.ids) + [1] * len(each.tokens),
                "logprobs": [0.0] * len(each.ids) + each.logprobs,
                "reward": rewards[index],
                "advantage": (rewards[index] - group.mean()) / (group.std() + 1e-4),
                "group": f"g-{index // 8}",
                "source": source,
            }
        )
    return rows


class Steps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.model = self.folder / "base"
        self.digest = write_model(self.model, 1)

    def request(self, rows, out="next", sources=(), **options):
        batch = write_batch(self.folder / "batch.safetensors", rows, target=self.digest)
        parent = {"folder": str(self.model), "digest": self.digest}
        listed = [{"folder": str(folder), "digest": digest} for folder, digest in sources]
        return {
            "batch": batch, "family": "adder", "parent": parent, "out": str(self.folder / out), "sources": listed,
            "options": {"rate": 1e-3, **options},
        }

    def refusal(self, request):
        with self.assertRaises(Refusal) as raised:
            Trainer("cpu").step(request)
        self.assertFalse(Path(request["out"]).exists())
        return raised.exception

    def test_a_step_changes_the_weights_and_agrees_with_what_the_server_recorded(self):
        report = Trainer("cpu").step(self.request(sampled_rows(self.model, self.digest)))
        self.assertNotEqual(report["digest"], self.digest)
        self.assertLess(report["mismatch"]["largest"], 1e-4)
        self.assertEqual(report["mismatch"]["rows"], 32)
        self.assertLess(report["first"]["kl"], 1e-6)
        self.assertEqual((report["rows"], report["stale"]), (32, 0))

    def test_a_step_that_is_written_is_not_trained_again_and_is_the_same_in_another_process(self):
        rows = sampled_rows(self.model, self.digest)
        trainer = Trainer("cpu")
        first = trainer.step(self.request(rows))
        self.assertTrue(trainer.step(self.request(rows))["earlier"])
        with self.assertRaises(Refusal) as raised:
            trainer.step(self.request(rows, rate=2e-3))
        self.assertEqual(raised.exception.code, "exists")
        self.assertEqual(Trainer("cpu").step(self.request(rows, out="again"))["digest"], first["digest"])

    def test_a_resumed_step_goes_on_with_the_state_of_the_optimizer(self):
        trainer = Trainer("cpu")
        first = trainer.step(self.request(sampled_rows(self.model, self.digest)))
        self.model, self.digest = self.folder / "next", first["digest"]
        rows = sampled_rows(self.model, self.digest)
        kept = trainer.step(self.request(rows, out="kept"))
        read = Trainer("cpu").step(self.request(rows, out="read"))
        self.assertEqual((kept["optimizer"], read["optimizer"]), ("kept", "read"))
        self.assertEqual(kept["digest"], read["digest"])

    def test_another_temperature_than_the_servers_is_refused_and_nothing_is_written(self):
        refusal = self.refusal(self.request(sampled_rows(self.model, self.digest, temperature=0.7)))
        self.assertEqual(refusal.code, "logprob-mismatch")
        self.assertIn("Suspect the sampler: the recorded values fit temperature 0.7", refusal.message)

    def test_rows_of_other_weights_under_the_name_of_these_are_refused(self):
        other = self.folder / "other"
        write_model(other, 2)
        refusal = self.refusal(self.request(sampled_rows(other, self.digest)))
        self.assertIn("Suspect the weights", refusal.message)

    def test_stale_rows_are_compared_with_their_own_weights_and_count_with_truncated_importance(self):
        older = self.folder / "older"
        digest = write_model(older, 2)
        rows = sampled_rows(older, digest)
        report = Trainer("cpu").step(self.request(rows, sources=[(older, digest)], importance_cap=1.5))
        self.assertEqual((report["stale"], report["mismatch"]["rows"]), (32, 32))
        self.assertLess(report["mismatch"]["largest"], 1e-4)
        # The ratio to the weights at the start of the step begins at 1, for any older sampling weights.
        self.assertLess(report["first"]["kl"], 1e-6)
        wrong = [{**row, "logprobs": [each * 0.5 for each in row["logprobs"]]} for row in rows]
        refusal = self.refusal(self.request(wrong, out="wrong", sources=[(older, digest)]))
        self.assertEqual(refusal.code, "logprob-mismatch")

    def test_the_importance_of_a_stale_token_is_truncated_at_the_cap(self):
        from rollbook_torch.objectives import clipped_objective

        recorded, start = torch.tensor([[-3.0, -0.5]]), torch.tensor([[-0.5, -1.0]])
        loss, _ = clipped_objective(
            start, recorded, start, advantages=torch.ones(1, 2), mask=torch.ones(1, 2), stale=torch.tensor([True]),
            clip=0.2, clip_high=0.2, cap=2.0,
        )
        torch.testing.assert_close(loss, -torch.tensor([[2.0, float(np.exp(-0.5))]]))

    def test_equal_rewards_teach_nothing_and_are_refused(self):
        rows = [{**row, "advantage": 0.0} for row in sampled_rows(self.model, self.digest)]
        self.assertEqual(self.refusal(self.request(rows)).code, "weights-unchanged")

    def test_weights_that_are_not_what_the_revision_says_are_refused(self):
        request = self.request(sampled_rows(self.model, self.digest))
        (self.model / files.WEIGHTS).write_bytes((self.model / files.WEIGHTS).read_bytes()[:-1] + b"\7")
        self.assertEqual(self.refusal(request).code, "digest-mismatch")

    def test_a_step_that_does_not_fit_into_memory_is_refused_and_fits_with_fewer_rows(self):
        request = self.request(128 * sampled_rows(self.model, self.digest), passes=1)
        path = self.folder / "request.json"
        answers = {}
        for rows in (4096, 256):
            path.write_text(json.dumps({**request, "options": {**request["options"], "rows": rows}}))
            done = subprocess.run([sys.executable, __file__, "--limited", str(path)], capture_output=True, text=True)
            answers[rows] = json.loads(done.stdout) if done.stdout else self.fail(done.stderr)
        self.assertEqual(answers[4096]["code"], "out-of-memory")
        self.assertRegex(answers[4096]["message"], "with 4096 rows at a time. Lower learner.rows")
        self.assertEqual(answers[256], {"rows": 4096})


class Serving(unittest.TestCase):
    def test_the_revision_that_is_asked_for_is_not_given_up_for_a_new_one(self):
        with tempfile.TemporaryDirectory() as name:
            server = ModelServer("cpu", 8, 1)
            folders = [Path(name) / str(index) for index in range(KEPT_REVISIONS + 1)]
            for index, folder in enumerate(folders):
                write_model(folder, index)
            for index, folder in enumerate(folders[:-1]):
                server.load(f"r-{index}", folder, None)
            server.models.move_to_end("r-0")  # as a request does
            server.load(f"r-{KEPT_REVISIONS}", folders[-1], None)
            self.assertIn("r-0", server.models)
            self.assertEqual(len(server.models), KEPT_REVISIONS)


def step_in_limited_memory(path: str) -> None:
    import resource

    request = json.loads(Path(path).read_text())
    trainer = Trainer("cpu")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (96 << 20), used + (96 << 20)))
    try:
        report = trainer.step(request)
        print(json.dumps({"rows": report["rows"]}))
    except Refusal as refusal:
        print(json.dumps({"code": refusal.code, "message": refusal.message}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--limited"]:
        step_in_limited_memory(sys.argv[2])
    else:
        unittest.main()

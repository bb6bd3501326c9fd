"""Batches that cannot be trained on, and log-probabilities that do not agree. Needs numpy and safetensors, not torch."""

import tempfile
import unittest
from pathlib import Path

import numpy as np
from batches import BATCH, TOKENIZER, write_batch
from rollbook_torch.batch import provenance, read_batch, require_trainable
from rollbook_torch.mismatch import compare, require_agreement, suspect_layer
from rollbook_torch.refusal import Refusal

TARGET = "sha256:" + "1" * 64
ROW = {"ids": [1, 4, 13, 5], "mask": [0, 0, 1, 1], "logprobs": [0, 0, -0.5, -1.5]}


class Batches(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "batch.safetensors"

    def require(self, on_policy=True, family="adder", tokenizer=TOKENIZER, vocabulary=15):
        require_trainable(
            read_batch(self.path), self.path, family=family, tokenizer=tokenizer, vocabulary=vocabulary, on_policy=on_policy,
            about=provenance(self.path),
        )

    def refusal(self, selection=None, **model):
        write_batch(self.path, [ROW], target=TARGET, selection=selection)
        with self.assertRaises(Refusal) as raised:
            self.require(**model)
        return raised.exception

    def test_a_batch_of_another_family_is_refused_with_both_names(self):
        refusal = self.refusal(family="other")
        self.assertEqual(refusal.code, "policy-family-mismatch")
        self.assertRegex(refusal.message, "of the family adder, the model of other. Cut one of other")

    def test_a_batch_of_another_tokenizer_or_of_none_is_refused(self):
        other = "sha256:" + "c" * 64
        refusal = self.refusal(tokenizer=other)
        self.assertEqual(refusal.code, "other-tokenizer")
        self.assertIn(f"--tokenizer {other}", refusal.message)
        self.assertIn("names no tokenizer", self.refusal({"tokenizer": None}).message)

    def test_ids_outside_of_the_vocabulary_are_refused(self):
        self.assertRegex(self.refusal(vocabulary=13).message, "token id 13 is outside of the vocabulary of 13")

    def test_model_log_probabilities_are_refused_where_ratios_are_taken(self):
        refusal = self.refusal({"logprobKind": "model"})
        self.assertEqual(refusal.code, "wrong-logprob-kind")
        self.assertIn("--logprob-kind sampling", refusal.message)
        self.require(on_policy=False)

    def test_a_file_that_changed_another_batch_and_steps_are_refused(self):
        about = write_batch(self.path, [ROW], target=TARGET)
        content = bytearray(self.path.read_bytes())
        content[-1] ^= 1
        self.path.write_bytes(content)
        for given, code in (
            ({"sha256": about["sha256"]}, "digest-mismatch"),
            ({"expected": "sha256:" + "e" * 64}, "other-batch"),
        ):
            with self.assertRaises(Refusal) as raised:
                read_batch(self.path, **given)
            self.assertEqual(raised.exception.code, code)
        write_batch(self.path, [ROW], target=TARGET, selection={"level": "step"})
        with self.assertRaises(Refusal) as raised:
            read_batch(self.path, BATCH)
        self.assertEqual(raised.exception.code, "wrong-level")

    def test_a_row_knows_which_weights_sampled_it(self):
        older = "sha256:" + "2" * 64
        write_batch(self.path, [ROW, {**ROW, "source": older}], target=TARGET)
        batch = read_batch(self.path)
        self.assertEqual(batch.sources, [TARGET, older])
        self.assertEqual(batch.stale.tolist(), [False, True])


class Mismatches(unittest.TestCase):
    """A table of logits stands for the model: the next token depends on the last token and the position."""

    def setUp(self):
        self.random = np.random.default_rng(7)
        self.logits = self.random.normal(size=(12, 9, 9)) * 2

    def rows(self, log_of):
        """`log_of(logits, ids, place)` gives the value that the server recorded for the token at a position."""
        rows = []
        for _ in range(6):
            ids = self.random.integers(0, 9, size=8)
            mask = np.array([0, 0, 0, 1, 1, 1, 1, 1])
            logits = self.logits_of(ids)
            rows.append((ids, mask, np.array([log_of(logits, ids, place) if mask[place] else 0.0 for place in range(8)])))
        return rows

    def logits_of(self, ids):
        return np.stack([self.logits[place, token] for place, token in enumerate(ids)])

    def suspect(self, log_of, temperature=1.0):
        return suspect_layer(rows=self.rows(log_of), logits_of=self.logits_of, temperature=temperature, tolerance=0.01)

    @staticmethod
    def log_softmax(logits):
        return logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()

    def own(self, logits, ids, place, temperature=1.0):
        return self.log_softmax(logits[place - 1] / temperature)[ids[place]]

    def test_a_difference_above_the_tolerance_is_refused_with_its_size_and_the_layer(self):
        found = compare(np.array([-1.0, -2.0]), np.array([-1.0, -2.5]))
        require_agreement(found, 0.6, lambda: self.fail("nothing to suspect"))
        with self.assertRaises(Refusal) as raised:
            require_agreement(found, 0.02, lambda: "the sampler")
        self.assertEqual(raised.exception.code, "logprob-mismatch")
        self.assertRegex(raised.exception.message, r"differ by 0\.5 .* tolerance is 0\.02\. Suspect the sampler\. Nothing was trained")

    def test_another_temperature_is_the_sampler(self):
        said = self.suspect(lambda logits, ids, place: self.own(logits, ids, place, 0.7))
        self.assertRegex(said, "^the sampler: the recorded values fit temperature 0.7, the trainer was told 1")

    def test_values_of_the_next_place_are_the_alignment(self):
        self.assertRegex(
            self.suspect(lambda logits, ids, place: self.log_softmax(logits[place - 2])[ids[place]]), "^the alignment of tokens.* -1"
        )

    def test_values_above_the_model_are_filters(self):
        def filtered(logits, ids, place):
            kept = np.sort(logits[place - 1])[-5]
            cut = np.where(logits[place - 1] >= min(kept, logits[place - 1][ids[place]]), logits[place - 1], -np.inf)
            return self.log_softmax(cut)[ids[place]]

        self.assertRegex(self.suspect(filtered), "^filters of the sampler")

    def test_a_first_token_that_fits_and_later_ones_that_do_not_is_the_cache(self):
        wrong = lambda logits, ids, place: self.own(logits, ids, place) - (0.0 if place == 3 else 0.3)
        self.assertRegex(self.suspect(wrong), "^the KV cache")

    def test_anything_else_is_the_weights(self):
        wrong = lambda logits, ids, place: self.own(logits, ids, place) + self.random.normal() * 0.5
        self.assertRegex(self.suspect(wrong), "^the weights")


if __name__ == "__main__":
    unittest.main()

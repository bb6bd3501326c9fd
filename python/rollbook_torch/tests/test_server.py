"""The parts of the model server that need no weights."""

import asyncio
import threading
import unittest
from collections import OrderedDict

from rollbook_torch.refusal import Refusal
from rollbook_torch.server import ModelServer


class NoWords:
    def chat(self, _messages):
        return []


class Revisions(unittest.TestCase):
    def test_a_revision_that_is_given_up_while_it_is_asked_for_is_no_crash(self):
        server = ModelServer("cpu", 1, 0)
        server.tokenizer = NoWords()

        def give_up():
            with server._more:
                server.models.pop("r-1", None)

        class GivenUp(OrderedDict):
            """Another thread evicts the revision right after a lookup has found it."""

            def __contains__(self, revision):
                there = super().__contains__(revision)
                thread = threading.Thread(target=give_up)
                thread.start()
                thread.join(0.2)
                return there

        server.models = GivenUp({"r-1": object()})
        with self.assertRaises(Refusal) as raised:
            asyncio.run(server._complete({"model": "r-1"}, chat=True))
        self.assertEqual(raised.exception.code, "bad-prompt")

    def test_a_revision_that_is_not_loaded_is_refused_by_name(self):
        with self.assertRaises(Refusal) as raised:
            asyncio.run(ModelServer("cpu", 1, 0)._complete({"model": "r-9"}, chat=True))
        self.assertEqual(raised.exception.code, "unknown-revision")
        self.assertIn("r-9 is not loaded", raised.exception.message)


if __name__ == "__main__":
    unittest.main()

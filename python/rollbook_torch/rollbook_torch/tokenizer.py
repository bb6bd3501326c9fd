"""Tokenizers of a checkpoint folder: one symbol per character (characters.json), or a tokenizer of the tokenizers
library.

The digest of the file identifies the tokenizer: the server reports it, the gateway records it, the trainer compares it.
"""

import hashlib
import json
from pathlib import Path

from .refusal import Refusal

CHARACTERS = "characters.json"
TOKENIZER = "tokenizer.json"


class Characters:
    """Three special symbols, then one id per character."""

    pad, bos, eos = 0, 1, 2

    def __init__(self, symbols: str):
        self.symbols = symbols
        self._ids = {symbol: index + 3 for index, symbol in enumerate(symbols)}

    @property
    def size(self) -> int:
        return len(self.symbols) + 3

    def encode(self, text: str) -> list[int]:
        try:
            return [self._ids[symbol] for symbol in text]
        except KeyError as error:
            raise Refusal(
                "unknown-symbol",
                f"the model does not know the character {error.args[0]!r}. It knows {self.symbols!r}.",
            ) from None

    def decode(self, ids: list[int]) -> str:
        return "".join(self.symbols[each - 3] for each in ids if each >= 3)

    def tokens(self, ids: list[int]) -> list[str]:
        return [("<pad>", "<bos>", "<eos>")[each] if each < 3 else self.symbols[each - 3] for each in ids]

    def prompt(self, text: str) -> list[int]:
        return [self.bos, *self.encode(text)]

    def chat(self, messages: list[dict]) -> list[int]:
        """Replies end with the end symbol, so a conversation that resends a reply has the same ids for it."""
        ids = [self.bos]
        for message in messages:
            ids += self.encode(str(message.get("content") or ""))
            if message.get("role") == "assistant":
                ids.append(self.eos)
        return ids


class Pretrained:
    """A tokenizer of the tokenizers library, with the chat template of its folder."""

    def __init__(self, folder: Path):
        from transformers import AutoTokenizer

        self._own = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        self.eos = self._own.eos_token_id
        self.bos = self._own.bos_token_id
        self.pad = self._own.pad_token_id if self._own.pad_token_id is not None else self.eos

    @property
    def size(self) -> int:
        return len(self._own)

    def decode(self, ids: list[int]) -> str:
        return self._own.decode(ids, skip_special_tokens=True)

    def tokens(self, ids: list[int]) -> list[str]:
        return [self._own.decode([each]) for each in ids]

    def prompt(self, text: str) -> list[int]:
        return self._own(text)["input_ids"]

    def chat(self, messages: list[dict]) -> list[int]:
        return self._own.apply_chat_template(messages, add_generation_prompt=True, tokenize=True)


def load_tokenizer(folder: Path):
    """The tokenizer and the digest of its file."""
    if (folder / CHARACTERS).exists():
        content = (folder / CHARACTERS).read_bytes()
        return Characters(json.loads(content)["symbols"]), digest_of(content)
    if (folder / TOKENIZER).exists():
        return Pretrained(folder), digest_of((folder / TOKENIZER).read_bytes())
    raise Refusal("no-tokenizer", f"{folder} has neither {CHARACTERS} nor {TOKENIZER}. Copy one beside the weights.")


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"

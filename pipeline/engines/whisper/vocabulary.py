"""Token ids and the text they stand for; GPT-2's byte-level tokens plus Whisper's special ones."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tokenizers import Tokenizer

from pipeline.errors import ModelIntegrityError, ModelNotFoundError
from pipeline.types import Task

_LANGUAGE = re.compile(r"<\|([a-z]{2,3})\|>")
_TASKS = {Task.TRANSCRIBE: "<|transcribe|>", Task.TRANSLATE: "<|translate|>"}


def _byte_of_character() -> dict[str, int]:
    """GPT-2's table: printable bytes stand for themselves, the others for characters from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(0x100 + i): b for i, b in enumerate(others)}


_BYTES = _byte_of_character()
_PIECES = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
"""GPT-2's: contractions, words, numbers and marks, each with the space before it."""


class Vocabulary:
    """The tokens of one model. Ids at and above `end_of_text` are special, those below are text."""

    def __init__(self, token_ids: Mapping[str, int]) -> None:
        """`token_ids` maps every known token, special ones included, to its id."""
        try:
            self.end_of_text = token_ids["<|endoftext|>"]
            self.start = token_ids["<|startoftranscript|>"]
            self.no_timestamps = token_ids["<|notimestamps|>"]
            self.task_ids = {task: token_ids[token] for task, token in _TASKS.items()}
        except KeyError as error:
            raise ModelIntegrityError(f"the tokenizer lacks {error}; use the one that belongs to the model") from error
        names = ("<|nospeech|>", "<|nocaptions|>")
        self.no_speech = next((token_ids[name] for name in names if name in token_ids), None)
        """The token whose probability says that nobody speaks."""
        self.first_timestamp = self.no_timestamps + 1
        """<|0.00|>; the ids behind it count in steps of 20 ms."""
        languages = [(i, m.group(1)) for token, i in token_ids.items() if (m := _LANGUAGE.fullmatch(token))]
        self.language_ids = {code: i for i, code in sorted(languages)}
        self._bytes = {
            i: bytes(_BYTES[c] for c in token)
            for token, i in token_ids.items()
            if i < self.end_of_text and all(c in _BYTES for c in token)
        }
        self._id_of = {text: i for i, text in self._bytes.items()}

    def encode(self, text: str) -> tuple[int, ...]:
        """Text tokens of a text as the model learnt to write it.

        Byte-pair encoding without a list of merges: GPT-2 numbered its tokens in the order in which they were merged,
        so of all neighbours that make a token, those with the lowest id are merged first.
        """
        return tuple(i for piece in _PIECES.findall(text) for i in self._merged(piece.encode("utf-8")))

    def _merged(self, piece: bytes) -> Iterable[int]:
        parts = [piece[i : i + 1] for i in range(len(piece))]
        while len(parts) > 1:
            ranks = [self._id_of.get(a + b, self.end_of_text) for a, b in zip(parts, parts[1:], strict=False)]
            lowest = min(ranks)
            if lowest == self.end_of_text:
                break
            at = ranks.index(lowest)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return (self._id_of[part] for part in parts if part in self._id_of)

    def text_ids(self, tokens: Iterable[int]) -> tuple[int, ...]:
        """Drops special tokens and timestamps."""
        return tuple(t for t in tokens if t < self.end_of_text)

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """UTF-8 of the text tokens; may begin or end inside a character."""
        return b"".join(self._bytes.get(t, b"") for t in tokens)

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of the tokens without surrounding space; a character cut off at the end is dropped."""
        return self.decode_bytes(tokens).decode("utf-8", errors="replace").rstrip("\ufffd").strip()


def load_vocabulary(folder: Path) -> Vocabulary:
    """Reads tokenizer.json, else vocabulary.json or vocabulary.txt (CTranslate2), else vocab.json (transformers).

    Raises:
        ModelNotFoundError: The folder has none of them.
        ModelIntegrityError: The file is not a Whisper tokenizer.
    """
    if (path := folder / "tokenizer.json").is_file():
        return Vocabulary(_tokenizer(path).get_vocab(with_added_tokens=True))
    if (path := folder / "vocabulary.json").is_file():
        return Vocabulary({token: i for i, token in enumerate(json.loads(path.read_text("utf-8")))})
    if (path := folder / "vocabulary.txt").is_file():
        lines = path.read_text("utf-8").removesuffix("\n").split("\n")
        return Vocabulary({token: i for i, token in enumerate(lines)})
    if (path := folder / "vocab.json").is_file():
        added = folder / "added_tokens.json"
        extra = json.loads(added.read_text("utf-8")) if added.is_file() else {}
        return Vocabulary(json.loads(path.read_text("utf-8")) | extra)
    raise ModelNotFoundError(f"{folder} has no tokenizer.json, vocabulary.json, vocabulary.txt or vocab.json; add one")


def _tokenizer(path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise ModelIntegrityError(f"{path} is damaged ({error}); fetch the model again") from error

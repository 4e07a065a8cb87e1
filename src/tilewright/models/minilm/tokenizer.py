"""Texts to token ids, by the checkpoint's own `tokenizer.json`.

That file's settings for truncation and padding are ignored. Those of all-MiniLM-L6-v2 cut at 128 tokens and
pad every text to 128, while the model was published to read 256 (known: its `sentence_bert_config.json`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.errors import MissingDependencyError, ModelError, UsageError
from tilewright.files import read_file

from .config import Config

MAX_TOKENIZER_BYTES = 64 * 2**20
"""Bound on the file; the largest vocabularies in use take about 20 MB."""


@dataclass(frozen=True)
class Tokens:
    """Ids of one text, special tokens included; `cut` says that the text was longer."""

    ids: tuple[int, ...]
    cut: bool


class Tokenizer:
    """The tokenizer of the checkpoint in `folder`.

    Raises MissingDependencyError without the package `tokenizers`, UsageError for a missing file, ModelError
    for one that is no tokenizer.
    """

    def __init__(self, folder: Path, config: Config) -> None:
        try:
            import tokenizers
        except ImportError as error:
            raise MissingDependencyError(
                "splitting text into tokens needs the package tokenizers, which is not installed",
                hint="pip install 'tilewright[embed]'",
            ) from error
        self._config = config
        path = folder / "tokenizer.json"
        data = read_file(path, limit=MAX_TOKENIZER_BYTES)
        try:
            self._tokenizer: Any = tokenizers.Tokenizer.from_buffer(data)
        except Exception as error:  # the package raises nothing more special
            raise ModelError(f"no tokenizer: {' '.join(str(error).split())}", where=str(path)) from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(config.max_tokens)

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Ids of each text; none has more than `config.max_tokens`.

        Raises UsageError for a text that is no valid Unicode, ModelError for an id that the embedding table
        does not have.
        """
        for number, text in enumerate(texts, 1):
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise UsageError(
                    f"sentence {number} is not valid text at character {error.start + 1}"
                ) from error
        if self._config.lower_case:
            texts = [text.lower() for text in texts]
        found = []
        for encoding in self._tokenizer.encode_batch(list(texts)):
            ids = tuple(encoding.ids)
            if max(ids, default=0) >= self._config.vocabulary or not ids:
                raise ModelError(
                    f"the tokenizer gives {f'id {max(ids)}' if ids else 'no id'} for a text, "
                    f"the embedding table has {self._config.vocabulary:,} rows"
                )
            found.append(Tokens(ids, bool(encoding.overflowing)))
        return found

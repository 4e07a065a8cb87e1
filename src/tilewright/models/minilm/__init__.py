"""Sentence embeddings by all-MiniLM-L6-v2, or any BERT encoder with mean or first-token pooling.

The checkpoint is a folder as sentence-transformers writes it (known: read from the published model): a
`config.json` with the architecture, `model.safetensors`, `tokenizer.json`, and optionally
`sentence_bert_config.json` (longest text) and `1_Pooling/config.json`. The host turns texts into token ids
and ids into sums of embedding rows; the chip starts at the embedding's LayerNorm and ends with the pooled
vector; the host divides that by its length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..definition import ModelDefinition

BATCH = 1
TOKENS = 128


def build(batch: int = BATCH, tokens: int = TOKENS) -> ModelDefinition:
    """The installed all-MiniLM-L6-v2 for `batch` texts of at most `tokens` tokens.

    Raises MissingDependencyError when it is not installed, UsageError for a size that it does not have.
    """
    from .checkpoint import load_checkpoint
    from .locate import installed_folder
    from .network import network

    return network(load_checkpoint(installed_folder()), batch=batch, tokens=tokens)

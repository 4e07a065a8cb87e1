"""What the host does around the network: ids to its inputs, its outputs to unit vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .checkpoint import Checkpoint, Floats

MASKED = -10_000.0
"""Added to the scores of padding. Its exponential is 0, and it fits float16 together with any score."""

PADDING_ID = 0
"""What padding looks up, as in the model's own framework; anything finite would do, for nothing reads it."""


def arrays(
    checkpoint: Checkpoint, sentences: Sequence[Sequence[int]], *, batch: int, tokens: int
) -> dict[str, Floats]:
    """The network's inputs for at most `batch` sentences of 1 to `tokens` ids each.

    Texts are padded on the right; a batch that is not full is filled with texts of one padding token.
    """
    assert 0 < len(sentences) <= batch and all(1 <= len(ids) <= tokens for ids in sentences)
    padded = np.full((batch, tokens), PADDING_ID, np.int64)
    lengths = np.ones(batch, np.int64)
    for row, ids in enumerate(sentences):
        padded[row, : len(ids)] = ids
        lengths[row] = len(ids)
    real = np.arange(tokens) < lengths[:, None]
    if checkpoint.config.pooling == "mean":
        weights = real / lengths[:, None]
    else:
        weights = np.zeros((batch, tokens))
        weights[:, 0] = 1
    return {
        "embeddings": checkpoint.words[padded] + (checkpoint.positions[:tokens] + checkpoint.types[0]),
        "mask": np.where(real, np.float32(0), np.float32(MASKED)),
        "pooling": weights[:, None, :].astype(np.float32),
    }


def unit_vectors(pooled: NDArray[np.generic]) -> Floats:
    """Rows [..., hidden] as float32 [rows, hidden], each divided by its Euclidean length."""
    rows = np.asarray(pooled, np.float32).reshape(-1, pooled.shape[-1])
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    # The floor of the model's own framework: a vector of zeros stays one.
    result: Floats = (rows / np.maximum(lengths, 1e-12)).astype(np.float32)
    return result

"""The real all-MiniLM-L6-v2 on all tiles of the simulated chip, against what its own library answers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from support.minilm_reference import load_sentences, load_vectors, model_folder
from tilewright.cli.embed_run import EmbedResult, embed
from tilewright.cli.simulated_run import compile_and_simulate
from tilewright.models.minilm.checkpoint import load_checkpoint
from tilewright.models.minilm.lookup import arrays, unit_vectors
from tilewright.models.minilm.network import OUTPUT, network
from tilewright.models.minilm.tokenizer import Tokenizer

pytestmark = pytest.mark.sim

SENTENCES = load_sentences()
COSINE = 0.999
"""Least cosine between the float16 vector of the chip and the float32 one of the library. The rounding alone,
modelled in NumPy, leaves 0.99999."""
DISTINCT = 0.004
"""Cosines of two pairs that differ by more than this in float32 have the same order on the chip."""

execute = partial(compile_and_simulate, tiles=1472, cache=None)


@pytest.fixture(scope="module")
def folder() -> Path:
    return model_folder()


@pytest.fixture(scope="module")
def vectors() -> NDArray[np.float32]:
    return load_vectors()


@pytest.fixture(scope="module")
def result(folder: Path) -> EmbedResult:
    return embed(folder, SENTENCES, execute=execute)


def test_every_sentence(result: EmbedResult, vectors: NDArray[np.float32]) -> None:
    cosines = np.sum(result.vectors * vectors, axis=1)
    assert cosines.min() >= COSINE
    assert [group.tokens for group, _ in result.programs] == [16, 32, 64, 128, 256]
    assert result.tile_bytes_max < result.tile_bytes


def test_similarities_have_the_same_order(result: EmbedResult, vectors: NDArray[np.float32]) -> None:
    expected = vectors @ vectors.T
    for row, other in zip(result.similarity, expected, strict=True):
        gaps = other[:, None] - other[None]
        assert ((row[:, None] - row[None])[gaps > DISTINCT] > 0).all()


def test_alone(folder: Path, vectors: NDArray[np.float32]) -> None:
    chosen = [7, 8, 0]
    result = embed(folder, [SENTENCES[i] for i in chosen], execute=execute, batch=1)
    ((group, execution),) = result.programs
    assert (group.tokens, group.batch, len(execution.cycles)) == (16, 1, 3)
    assert len(set(execution.cycles)) == 1
    assert np.sum(result.vectors * vectors[chosen], axis=1).min() >= COSINE


def test_padding_changes_nothing(folder: Path, vectors: NDArray[np.float32]) -> None:
    checkpoint = load_checkpoint(folder)
    tokens = Tokenizer(folder, checkpoint.config).encode([SENTENCES[7]])
    for length in (16, 32):
        graph = network(checkpoint, batch=1, tokens=length).graph()
        inputs = arrays(checkpoint, [tokens[0].ids], batch=1, tokens=length)
        done = execute(graph, [inputs], lambda _: None)
        (vector,) = unit_vectors(done.outputs[0][OUTPUT])
        assert vector @ vectors[7] >= COSINE

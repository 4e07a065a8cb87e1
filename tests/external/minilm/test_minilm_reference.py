"""The real all-MiniLM-L6-v2: our tokens and our graph against what the model's own library answers.

data/reference.npz holds those answers; compute_reference.py makes it, and says how. The cosines further down
come from a computation in float64 that shares no code with either.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compute_reference import MAX_TOKENS, compute
from numpy.typing import NDArray

from support.minilm_reference import DATA, load_sentences, load_vectors, model_folder
from tilewright.models.minilm.checkpoint import Checkpoint, load_checkpoint
from tilewright.models.minilm.grouping import group
from tilewright.models.minilm.lookup import arrays, unit_vectors
from tilewright.models.minilm.network import OUTPUT, network
from tilewright.models.minilm.tokenizer import Tokenizer

pytestmark = pytest.mark.external

SENTENCES = load_sentences()


@pytest.fixture(scope="module")
def folder() -> Path:
    return model_folder()


@pytest.fixture(scope="module")
def checkpoint(folder: Path) -> Checkpoint:
    return load_checkpoint(folder)


@pytest.fixture(scope="module")
def vectors() -> NDArray[np.float32]:
    return load_vectors()


@pytest.fixture(scope="module")
def ids() -> list[tuple[int, ...]]:
    with np.load(DATA / "reference.npz") as stored:
        parts = np.split(stored["ids"], np.cumsum(stored["lengths"])[:-1])
    return [tuple(part.tolist()) for part in parts]


def test_the_sentences_are_varied(ids: list[tuple[int, ...]]) -> None:
    lengths = list(map(len, ids))
    assert len(SENTENCES) == len(set(SENTENCES)) == 50
    assert {2, 16, 17, 32, 64, 128, 256} <= set(lengths) and max(lengths) == MAX_TOKENS
    assert len(group(lengths, MAX_TOKENS)) == 5
    scripts = {ord(letter) >> 8 for sentence in SENTENCES for letter in sentence}
    assert len(scripts) > 12


def test_tokens(folder: Path, checkpoint: Checkpoint, ids: list[tuple[int, ...]]) -> None:
    tokens = Tokenizer(folder, checkpoint.config).encode(SENTENCES)
    assert [one.ids for one in tokens] == ids
    assert [index for index, one in enumerate(tokens) if one.cut] == [48, 49]


def test_settings(checkpoint: Checkpoint) -> None:
    config = checkpoint.config
    assert (config.layers, config.hidden, config.heads, config.intermediate) == (6, 384, 12, 1536)
    assert (config.vocabulary, config.positions, config.max_tokens) == (30522, 512, 256)
    assert sum(array.size for array in checkpoint.layers.values()) == 6 * 1_774_464


@pytest.mark.parametrize("tokens", [16, 32, 64])
def test_the_graph_computes_the_models_vectors(
    checkpoint: Checkpoint, vectors: NDArray[np.float32], ids: list[tuple[int, ...]], tokens: int
) -> None:
    (part,) = (one for one in group(list(map(len, ids)), MAX_TOKENS) if one.tokens == tokens)
    graph = network(checkpoint, batch=part.batch, tokens=tokens).graph()
    run = part.runs[0]
    given = arrays(checkpoint, [ids[index] for index in run], batch=part.batch, tokens=tokens)
    found = unit_vectors(graph.evaluate(given)[OUTPUT])[: len(run)]
    assert np.abs(found - vectors[list(run)]).max() < 1e-6


def test_known_cosines(vectors: NDArray[np.float32]) -> None:
    index = {sentence: number for number, sentence in enumerate(SENTENCES)}

    def cosine(a: str, b: str) -> float:
        return float(vectors[index[a]] @ vectors[index[b]])

    assert cosine("a cat sits on the mat", "a kitten rests on a rug") == pytest.approx(0.660121, abs=2e-6)
    happy = "That is a happy person"
    assert cosine(happy, "That is a happy dog") == pytest.approx(0.694577, abs=2e-6)
    assert cosine(happy, "That is a very happy person") == pytest.approx(0.942915, abs=2e-6)
    assert cosine(happy, "Today is a sunny day") == pytest.approx(0.256876, abs=2e-6)


def test_recomputed_with_pytorch(
    folder: Path, vectors: NDArray[np.float32], ids: list[tuple[int, ...]]
) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    again = compute(folder, SENTENCES)
    assert tuple(again["ids"].tolist()) == tuple(number for one in ids for number in one)
    assert np.abs(again["vectors"] - vectors).max() < 1e-5

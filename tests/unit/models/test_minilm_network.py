"""The encoder as a graph, against a forward pass written anew from the tensors as they are stored."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tiny_checkpoint import HEADS, HIDDEN, LAYERS, POSITIONS, WORDS, Tensors, make_tensors, write_checkpoint

from tilewright.errors import UsageError
from tilewright.graph import parse_graph, print_graph
from tilewright.models.minilm.checkpoint import Checkpoint, load_checkpoint
from tilewright.models.minilm.lookup import arrays, unit_vectors
from tilewright.models.minilm.network import OUTPUT, network

pytestmark = pytest.mark.unit

Doubles = NDArray[np.float64]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def checkpoint(folder: Path) -> Checkpoint:
    return load_checkpoint(folder)


def forward(tensors: Tensors, ids: Sequence[int], *, mean: bool = True) -> Doubles:
    """One unpadded sentence in float64, head by head, with nothing of Tilewright: a vector of length one."""
    t = {name: array.astype(np.float64) for name, array in tensors.items()}

    def norm(x: Doubles, name: str) -> Doubles:
        centred = x - x.mean(axis=1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
        return centred / deviation * t[f"{name}.LayerNorm.weight"] + t[f"{name}.LayerNorm.bias"]

    def linear(x: Doubles, name: str) -> Doubles:
        return x @ t[f"{name}.weight"].T + t[f"{name}.bias"]

    x = t["embeddings.word_embeddings.weight"][list(ids)]
    x = x + t["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + t["embeddings.token_type_embeddings.weight"][0], "embeddings")
    width = HIDDEN // HEADS
    for layer in range(LAYERS):
        base = f"encoder.layer.{layer}"
        query, key, value = (linear(x, f"{base}.attention.self.{part}") for part in ("query", "key", "value"))
        mixed = []
        for head in range(HEADS):
            part = slice(head * width, (head + 1) * width)
            scores = np.exp(query[:, part] @ key[:, part].T / math.sqrt(width))
            mixed.append(scores / scores.sum(axis=1, keepdims=True) @ value[:, part])
        x = norm(linear(np.hstack(mixed), f"{base}.attention.output.dense") + x, f"{base}.attention.output")
        inner = linear(x, f"{base}.intermediate.dense")
        inner = inner / 2 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        x = norm(linear(inner, f"{base}.output.dense") + x, f"{base}.output")
    pooled = x.mean(axis=0) if mean else x[0]
    result: Doubles = pooled / np.linalg.norm(pooled)
    return result


def embed(checkpoint: Checkpoint, sentences: Sequence[Sequence[int]], batch: int, tokens: int) -> Doubles:
    graph = network(checkpoint, batch=batch, tokens=tokens).graph()
    given_ = arrays(checkpoint, sentences, batch=batch, tokens=tokens)
    result: Doubles = unit_vectors(graph.evaluate(given_)[OUTPUT])[: len(sentences)].astype(np.float64)
    return result


ids = st.lists(st.integers(0, len(WORDS) - 1), min_size=1, max_size=20)


@settings(max_examples=12)
@given(sentences=st.lists(ids, min_size=1, max_size=3), more=st.integers(0, 9), spare=st.integers(0, 2))
def test_the_graph_is_the_model_whatever_the_padding(
    checkpoint: Checkpoint, sentences: list[list[int]], more: int, spare: int
) -> None:
    tokens = max(map(len, sentences)) + more
    vectors = embed(checkpoint, sentences, len(sentences) + spare, tokens)
    for vector, sentence in zip(vectors, sentences, strict=True):
        assert np.abs(vector - forward(make_tensors(), sentence)).max() < 2e-6


def test_called_on_arrays_the_function_is_the_reference(checkpoint: Checkpoint) -> None:
    model = network(checkpoint, batch=2, tokens=7)
    given_ = arrays(checkpoint, [[2, 5, 3], [2, 4, 5, 6, 3]], batch=2, tokens=7)
    expected = model.graph().evaluate(given_)[OUTPUT]
    assert np.allclose(model.function(**given_), expected, atol=1e-6)


def test_first_token_pooling(folder: Path, tmp_path: Path) -> None:
    other = write_checkpoint(tmp_path)
    (other / "1_Pooling").mkdir()
    (other / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    sentence = [2, 5, 6, 3]
    (vector,) = embed(load_checkpoint(other), [sentence], 1, 9)
    assert np.abs(vector - forward(make_tensors(), sentence, mean=False)).max() < 2e-6


def test_the_layers_are_one_loop_over_stacked_weights(checkpoint: Checkpoint) -> None:
    graph = network(checkpoint, batch=2, tokens=16).graph()
    names = [operation.name for operation in graph.operations]
    assert names == ["layer_norm", "repeat", "matmul"]
    (region,) = graph.operations[1].regions
    body = [operation.name for operation in region.operations]
    assert body.count("matmul") == 6 and body.count("attention") == 1 and body.count("slice") == 0
    projections = region.operations[:6:2]
    assert {operation.operands[0].name for operation in projections} == {"x"}
    constants = {value.name: array for value, array in graph.constants}
    assert constants["layers.up_weight"].shape == (LAYERS, HIDDEN, 48)
    text = print_graph(graph)
    assert print_graph(parse_graph(text, constants)) == text


def test_rows_of_the_tables(checkpoint: Checkpoint) -> None:
    given_ = arrays(checkpoint, [[2, 5, 3]], batch=2, tokens=4)
    expected = checkpoint.words[[2, 5, 3, 0]] + checkpoint.positions[:4] + checkpoint.types[0]
    assert np.allclose(given_["embeddings"][0], expected, atol=1e-6)
    assert given_["mask"].tolist() == [[0, 0, 0, -10000], [0, -10000, -10000, -10000]]
    assert np.allclose(given_["pooling"], [[[1 / 3, 1 / 3, 1 / 3, 0]], [[1, 0, 0, 0]]])
    assert {array.dtype for array in given_.values()} == {np.dtype(np.float32)}


def test_unit_vectors() -> None:
    rows = unit_vectors(np.array([[[3.0, 4.0]], [[0.0, 0.0]], [[-1e-3, 0.0]]], np.float32))
    assert np.allclose(rows, [[0.6, 0.8], [0, 0], [-1, 0]]) and rows.dtype == np.float32


@pytest.mark.parametrize(("batch", "tokens"), [(0, 16), (1, 0), (1, POSITIONS + 1)])
def test_sizes_it_does_not_have(checkpoint: Checkpoint, batch: int, tokens: int) -> None:
    with pytest.raises(UsageError):
        network(checkpoint, batch=batch, tokens=tokens)

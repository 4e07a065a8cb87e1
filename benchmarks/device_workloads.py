"""The workloads of `device.py`: graphs with random weights, inputs, and what a correct result is.

Inputs as the hardware projects take them: activations of deviation 0.5, weights of 1/sqrt(inner extent).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilewright as tw
from tilewright import TensorType, ops
from tilewright.graph import Graph

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Workload:
    """One row of the table.

    Attributes:
        name: of the row.
        graph: makes the graph.
        goal: device cycles.
        multiply_adds: what the matrix units have to do.
        allowed: largest absolute error, None where only the operators' tolerances are asked for.
        published: cycles that others measured on the card, None if there are none.
        precision: as `tilewright.compile` takes it.
    """

    name: str
    graph: Callable[[], Graph]
    goal: int | None
    multiply_adds: int
    allowed: float | None = None
    published: int | None = None
    precision: str = "float16"

    def inputs(self) -> Mapping[str, Floats]:
        """Inputs of the graph, seeded."""
        random = np.random.default_rng(2)
        graph = self.graph()
        made: dict[str, Floats] = {}
        for value in graph.inputs:
            array = random.normal(0, 0.5, value.type.shape)
            if value.name in ("b", "w1", "w2"):
                array = array * 2 * value.type.shape[0] ** -0.5
            if value.name == "mask":
                array = np.zeros(value.type.shape)
            if value.name == "pooling":
                array = np.full(value.type.shape, 1 / value.type.shape[-1])
            made[value.name] = array.astype(np.float32)
        return made


def _weights(random: np.random.Generator, *shape: int) -> Floats:
    return (random.normal(size=shape) * shape[-2] ** -0.5).astype(np.float32)


def gemm(m: int, k: int, n: int) -> Graph:
    """Both operands are inputs, stored once."""
    return tw.trace(lambda a, b: ops.matmul(a, b), a=TensorType((m, k)), b=TensorType((k, n)))


def mlp(batch: int, width: int, layers: int) -> Graph:
    """Square layers with bias and GeLU."""
    random = np.random.default_rng(1)
    weights, biases = _weights(random, layers, width, width), np.zeros((layers, width), np.float32)

    def model(x: Any) -> Any:
        return ops.repeat(lambda x, w, b: ops.gelu(x @ w + b), layers, x, (weights, biases))

    return tw.trace(model, x=TensorType((batch, width)))


def block(tokens: int, width: int, hidden: int) -> Graph:
    """A transformer's MLP block. The weights are inputs, so that they are stored once."""
    b1, b2 = np.zeros(hidden, np.float32), np.zeros(width, np.float32)
    return tw.trace(
        lambda x, w1, w2: ops.gelu(x @ w1 + b1) @ w2 + b2,
        x=TensorType((tokens, width)),
        w1=TensorType((width, hidden)),
        w2=TensorType((hidden, width)),
    )


def attention(batch: int, heads: int, tokens: int, width: int) -> Graph:
    """The core: queries, keys and values are inputs."""
    type_ = TensorType((batch, tokens, width))
    return tw.trace(lambda q, k, v: ops.attention(q, k, v, heads=heads), q=type_, k=type_, v=type_)


def encoder(
    batch: int, tokens: int, *, layers: int, width: int, hidden: int, heads: int, pooled: bool
) -> Graph:
    """A post-norm encoder with exact GeLU, its weights in a loop over layers."""
    random = np.random.default_rng(1)
    square = {f"w{name}": _weights(random, layers, width, width) for name in "qkvo"}
    square["wq"] *= np.float32((width // heads) ** -0.5)
    w1, w2 = _weights(random, layers, width, hidden), _weights(random, layers, hidden, width)
    rows = {f"b{name}": np.zeros((layers, width), np.float32) for name in "qkvo2"}
    rows |= {f"g{name}": np.ones((layers, width), np.float32) for name in "12"}
    rows |= {f"s{name}": np.zeros((layers, width), np.float32) for name in "12"}
    weights = {**square, "w1": w1, "w2": w2, **rows, "b1": np.zeros((layers, hidden), np.float32)}
    one, zero = np.ones(width, np.float32), np.zeros(width, np.float32)

    def model(embeddings: Any, mask: Any, pooling: Any = None) -> Any:
        def layer(x: Any, **w: Any) -> Any:
            q, k, v = (x @ w[f"w{name}"] + w[f"b{name}"] for name in "qkv")
            mixed = ops.attention(q, k, v, mask, heads=heads, scale=1.0)
            x = ops.layer_norm(x + (mixed @ w["wo"] + w["bo"]), w["g1"], w["s1"], epsilon=1e-12)
            inner = ops.gelu(x @ w["w1"] + w["b1"], approximate="none")
            return ops.layer_norm(x + (inner @ w["w2"] + w["b2"]), w["g2"], w["s2"], epsilon=1e-12)

        x = ops.repeat(layer, layers, ops.layer_norm(embeddings, one, zero, epsilon=1e-12), weights)
        return x if pooling is None else ops.matmul(pooling, x)

    types = {"embeddings": TensorType((batch, tokens, width)), "mask": TensorType((batch, tokens))}
    if pooled:
        return tw.trace(model, **types, pooling=TensorType((batch, 1, tokens)))
    return tw.trace(lambda embeddings, mask: model(embeddings, mask), **types)


def _encoder_work(batch: int, tokens: int, layers: int, width: int, hidden: int) -> int:
    linear = tokens * width * (4 * width + 2 * hidden)
    return batch * layers * (linear + 2 * tokens * tokens * width)


def minilm(batch: int, goal: int) -> Workload:
    """The shapes of all-MiniLM-L6 at 128 tokens."""

    def graph() -> Graph:
        return encoder(batch, 128, layers=6, width=384, hidden=1536, heads=12, pooled=True)

    return Workload(f"minilm_b{batch}", graph, goal, _encoder_work(batch, 128, 6, 384, 1536))


def attention_core(width: int, batch: int, goal: int, published: int) -> Workload:
    """16 heads, 1,024 tokens."""
    work = 2 * batch * 1024 * 1024 * width
    name = f"attention_{width}_b{batch}"
    return Workload(name, lambda: attention(batch, 16, 1024, width), goal, work, 8e-5, published)


WORKLOADS = (
    Workload("gemm_f16_4096", lambda: gemm(4096, 4096, 4096), 1_100_000, 4096**3, 0.005, 2_262_696),
    Workload(
        "gemm_f32_4096", lambda: gemm(4096, 4096, 4096), 3_900_000, 4096**3, 1e-4, None, precision="float32"
    ),
    Workload(
        "mlp_f32_512x2048x8", lambda: mlp(512, 2048, 8), None, 512 * 2048**2 * 8, 1e-5, precision="float32"
    ),
    Workload("mlp_f16_512x2048x8", lambda: mlp(512, 2048, 8), 380_000, 512 * 2048**2 * 8, 0.005, 2_740_434),
    attention_core(768, 1, 75_000, 348_378),
    attention_core(1024, 1, 88_000, 426_132),
    attention_core(1152, 1, 100_000, 524_616),
    attention_core(1152, 8, 620_000, 1_903_842),
    Workload("siglip_mlp_b1", lambda: block(729, 1152, 4304), 165_000, 2 * 729 * 1152 * 4304, 0.005),
    minilm(1, 125_000),
    minilm(8, 420_000),
    minilm(64, 2_400_000),
    Workload(
        "bert_base_384_b1",
        lambda: encoder(1, 384, layers=12, width=768, hidden=3072, heads=12, pooled=False),
        1_200_000,
        _encoder_work(1, 384, 12, 768, 3072),
    ),
)

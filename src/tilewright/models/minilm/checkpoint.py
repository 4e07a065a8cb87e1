"""A checkpoint folder as parameters, in the form the network uses them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import UsageError

from ..tensor_file import TensorFile
from .config import Config, read_config

Floats = NDArray[np.float32]

PREFIX = "bert."
"""Before every name in checkpoints of a BERT with a head; the encoder's own has none (known: both occur)."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model's parameters, float32.

    Attributes:
        words [vocabulary, hidden], positions [positions, hidden], types [types, hidden]: embedding rows.
        gamma, beta: of the LayerNorm of their sum, [hidden].
        layers: what every layer has, stacked along a leading axis [layers, ...]. `x_weight` [inputs, outputs]
            and `x_bias` [outputs] for x in query, key, value, output, up, down; `x_gamma` and `x_beta`
            [hidden] of the LayerNorm after attention (`mixed`) and at the end (`final`). The scale of the
            scores, 1 / sqrt(head width), is folded into the query's, which keeps the scores small.
    """

    config: Config
    words: Floats
    positions: Floats
    types: Floats
    gamma: Floats
    beta: Floats
    layers: dict[str, Floats]


def load_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint in `folder`.

    Raises UsageError for a folder or file that is not there, UnsupportedError for another architecture, and
    ModelError naming the file and the tensor for contents that are wrong.
    """
    if not folder.is_dir():
        raise UsageError("there is no such checkpoint folder", where=str(folder))
    config = read_config(folder)
    path = folder / "model.safetensors"
    if not path.exists() and (folder / "pytorch_model.bin").exists():
        raise UsageError(
            "the weights are only there as pytorch_model.bin, which is not read",
            where=str(folder),
            hint="save them as model.safetensors",
        )
    with TensorFile(path) as file:
        return _read(file, config)


def _read(file: TensorFile, config: Config) -> Checkpoint:
    prefix = PREFIX if f"{PREFIX}embeddings.word_embeddings.weight" in file.names else ""
    hidden, inner = config.hidden, config.intermediate
    linears = {
        "query": ("attention.self.query", hidden, hidden),
        "key": ("attention.self.key", hidden, hidden),
        "value": ("attention.self.value", hidden, hidden),
        "output": ("attention.output.dense", hidden, hidden),
        "up": ("intermediate.dense", hidden, inner),
        "down": ("output.dense", inner, hidden),
    }
    norms = {"mixed": "attention.output.LayerNorm", "final": "output.LayerNorm"}

    def take(name: str, *shape: int) -> Floats:
        return file.take(prefix + name, shape)

    def stack(name: str, *shape: int) -> Floats:
        arrays = [take(f"encoder.layer.{layer}.{name}", *shape) for layer in range(config.layers)]
        # PyTorch keeps [outputs, inputs]; the products here take [inputs, outputs].
        return np.ascontiguousarray(np.stack([array.T for array in arrays]))

    layers = {}
    for name, (stored, inputs, outputs) in linears.items():
        layers[f"{name}_weight"] = stack(f"{stored}.weight", outputs, inputs)
        layers[f"{name}_bias"] = stack(f"{stored}.bias", outputs)
    for name, stored in norms.items():
        layers[f"{name}_gamma"] = stack(f"{stored}.weight", hidden)
        layers[f"{name}_beta"] = stack(f"{stored}.bias", hidden)
    for name in ("query_weight", "query_bias"):
        layers[name] *= np.float32(1 / math.sqrt(hidden // config.heads))
    return Checkpoint(
        config=config,
        words=take("embeddings.word_embeddings.weight", config.vocabulary, hidden),
        positions=take("embeddings.position_embeddings.weight", config.positions, hidden),
        types=take("embeddings.token_type_embeddings.weight", config.types, hidden),
        gamma=take("embeddings.LayerNorm.weight", hidden),
        beta=take("embeddings.LayerNorm.bias", hidden),
        layers=layers,
    )

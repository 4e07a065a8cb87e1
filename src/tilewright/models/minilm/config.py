"""The architecture of a checkpoint, read from its JSON files and checked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.errors import ModelError, UnsupportedError
from tilewright.files import read_file

MAX_JSON_BYTES = 2**20
"""Bound on a configuration file."""

_ACTIVATIONS = {"gelu": "none", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}
"""`hidden_act` -> the `approximate` of our gelu."""

_POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first"}
_OTHER_POOLINGS = (
    "pooling_mode_max_tokens",
    "pooling_mode_mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens",
    "pooling_mode_lasttoken",
)

_LIMITS = {
    "num_hidden_layers": 1024,
    "hidden_size": 2**14,
    "num_attention_heads": 2**10,
    "intermediate_size": 2**16,
    "vocab_size": 2**21,
    "max_position_embeddings": 2**16,
    "type_vocab_size": 2**8,
}
"""Largest values that are believed; far above any encoder of this kind."""


@dataclass(frozen=True)
class Config:
    """A BERT encoder and how its output becomes one vector.

    Attributes:
        layers, hidden, heads, intermediate: of the encoder; `hidden` is a multiple of `heads`.
        vocabulary, positions, types: rows of the three embedding tables.
        epsilon: added to the variance by every LayerNorm.
        approximate: the form of GeLU, "none" (exact) or "tanh".
        max_tokens: longest text in tokens, special ones included; longer ones lose their tail.
        pooling: "mean" over the real tokens, or "first" token.
        lower_case: texts are lower-cased before the tokenizer sees them.
    """

    layers: int
    hidden: int
    heads: int
    intermediate: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float
    approximate: str
    max_tokens: int
    pooling: str
    lower_case: bool


def read_config(folder: Path) -> Config:
    """The configuration of the checkpoint in `folder`.

    Raises UsageError for a missing file, ModelError for contents that make no sense, UnsupportedError for
    another architecture; each names the file.
    """
    path = folder / "config.json"
    data = _read(path)
    _check_architecture(data, path)
    numbers = {name: _integer(data, name, limit, path) for name, limit in _LIMITS.items()}
    if numbers["hidden_size"] % numbers["num_attention_heads"]:
        raise ModelError(
            f"hidden_size {numbers['hidden_size']} is not a multiple of "
            f"{numbers['num_attention_heads']} attention heads",
            where=str(path),
        )
    epsilon = data.get("layer_norm_eps", 1e-12)
    if type(epsilon) not in (int, float) or not 0 < epsilon < 1:
        raise ModelError(f"layer_norm_eps is {epsilon!r}, not a number in 0..1", where=str(path))
    max_tokens, lower_case = _sentence_settings(folder, numbers["max_position_embeddings"])
    return Config(
        layers=numbers["num_hidden_layers"],
        hidden=numbers["hidden_size"],
        heads=numbers["num_attention_heads"],
        intermediate=numbers["intermediate_size"],
        vocabulary=numbers["vocab_size"],
        positions=numbers["max_position_embeddings"],
        types=numbers["type_vocab_size"],
        epsilon=float(epsilon),
        approximate=_ACTIVATIONS[data["hidden_act"]],
        max_tokens=max_tokens,
        pooling=_pooling(folder),
        lower_case=lower_case,
    )


def _check_architecture(data: dict[str, Any], path: Path) -> None:
    kind = data.get("model_type")
    if kind != "bert":
        named = data.get("architectures")
        other = f"{kind!r}" + (f" ({named[0]})" if isinstance(named, list) and named else "")
        raise UnsupportedError(
            f"the model's architecture is {other}", where=str(path), hint="only BERT encoders are known"
        )
    if data.get("hidden_act") not in _ACTIVATIONS:
        raise UnsupportedError(
            f"hidden_act is {data.get('hidden_act')!r}",
            where=str(path),
            hint=f"known: {', '.join(_ACTIVATIONS)}",
        )
    positions = data.get("position_embedding_type", "absolute")
    if positions != "absolute":
        raise UnsupportedError(
            f"position_embedding_type is {positions!r}", where=str(path), hint="only absolute is known"
        )


def _sentence_settings(folder: Path, positions: int) -> tuple[int, bool]:
    """Longest text and whether it is lower-cased. Without the file, as long as there are positions."""
    path = folder / "sentence_bert_config.json"
    if not path.exists():
        return positions, False
    data = _read(path)
    longest = data.get("max_seq_length")
    # The framework takes the model's own limit when the file names none.
    max_tokens = positions if longest is None else _integer(data, "max_seq_length", positions, path)
    if max_tokens < 2:
        raise ModelError("max_seq_length leaves no room for the two special tokens", where=str(path))
    return max_tokens, data.get("do_lower_case") is True


def _pooling(folder: Path) -> str:
    path = folder / "1_Pooling" / "config.json"
    if not path.exists():
        return "mean"
    data = _read(path)
    wanted = [name for name in (*_POOLINGS, *_OTHER_POOLINGS) if data.get(name) is True]
    if len(wanted) != 1 or wanted[0] not in _POOLINGS:
        raise UnsupportedError(
            f"pooling is {' and '.join(wanted) or 'not stated'}",
            where=str(path),
            hint=f"known, one at a time: {', '.join(_POOLINGS)}",
        )
    return _POOLINGS[wanted[0]]


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(read_file(path, limit=MAX_JSON_BYTES))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"not JSON: {error}", where=str(path)) from error
    if not isinstance(data, dict):
        raise ModelError("not a JSON object", where=str(path))
    return data


def _integer(data: dict[str, Any], name: str, limit: int, path: Path) -> int:
    value = data.get(name)
    if type(value) is not int or not 1 <= value <= limit:
        raise ModelError(f"{name} is {value!r}, not a whole number from 1 to {limit:,}", where=str(path))
    return value

"""The encoder as a function over `tilewright.ops`: post-LayerNorm BERT and a weighted mean of its tokens."""

from __future__ import annotations

from functools import partial
from typing import Any

from tilewright import ops
from tilewright.errors import UsageError
from tilewright.tensor_type import TensorType

from ..definition import ModelDefinition
from .checkpoint import Checkpoint

OUTPUT = "pooled"


def network(checkpoint: Checkpoint, *, batch: int, tokens: int) -> ModelDefinition:
    """The model for `batch` texts of at most `tokens` tokens each.

    Inputs, as `lookup.arrays` makes them: embeddings [batch, tokens, hidden], the sum of the rows of word,
    position and type; mask [batch, tokens], added to the scores of each key; pooling [batch, 1, tokens], the
    weight of each token in the result. Output: pooled [batch, 1, hidden], not yet of length one.

    Raises UsageError for a size that the checkpoint does not have.
    """
    config = checkpoint.config
    if not 1 <= tokens <= config.positions:
        raise UsageError(
            f"{tokens} tokens: the model has {config.positions} positions",
            hint=f"give a number from 1 to {config.positions}",
        )
    if batch < 1:
        raise UsageError(f"a batch of {batch} texts", hint="give 1 or more")

    # Not a function of ours around it: the graph notes the line that applies an operator.
    normalise = partial(ops.layer_norm, epsilon=config.epsilon)
    gamma, beta, layers = checkpoint.gamma, checkpoint.beta, checkpoint.layers

    def minilm(embeddings: Any, mask: Any, pooling: Any) -> Any:
        def layer(x: Any, **w: Any) -> Any:
            # Three products of one operand: a planner may fuse them, and their results need no slicing.
            query = x @ w["query_weight"] + w["query_bias"]
            key = x @ w["key_weight"] + w["key_bias"]
            value = x @ w["value_weight"] + w["value_bias"]
            mixed = ops.attention(query, key, value, mask, heads=config.heads, scale=1.0)
            x = normalise(
                mixed @ w["output_weight"] + w["output_bias"] + x, w["mixed_gamma"], w["mixed_beta"]
            )
            inner = ops.gelu(x @ w["up_weight"] + w["up_bias"], approximate=config.approximate)
            return normalise(inner @ w["down_weight"] + w["down_bias"] + x, w["final_gamma"], w["final_beta"])

        x = normalise(embeddings, gamma, beta)
        return pooling @ ops.repeat(layer, config.layers, x, layers)

    inputs = {
        "embeddings": TensorType((batch, tokens, config.hidden)),
        "mask": TensorType((batch, tokens)),
        "pooling": TensorType((batch, 1, tokens)),
    }
    return ModelDefinition("minilm", minilm, inputs, (OUTPUT,))

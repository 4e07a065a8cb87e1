"""Handwritten digits: 64 -> 128 GeLU -> 64 GeLU -> 10, trained when asked for, in about two seconds."""

from __future__ import annotations

from typing import Any

from tilewright import ops
from tilewright.errors import MissingDependencyError
from tilewright.tensor_type import TensorType

from . import digits_reference as reference
from .definition import ModelDefinition


def load_data() -> reference.Digits:
    """The images and labels. Raises MissingDependencyError without scikit-learn."""
    try:
        return reference.load()
    except ImportError as error:
        raise MissingDependencyError(
            "the digits come with scikit-learn, which is not installed",
            hint="pip install 'tilewright[demo]'",
        ) from error


def train(data: reference.Digits) -> reference.Parameters:
    """Trained parameters, in about two seconds.

    Matrix products this small only lose by being spread over threads, badly so on a busy computer; with one
    thread, the bits do not depend on how many there are either.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        return reference.train(data)


def network(parameters: reference.Parameters, batch: int = reference.HELD_OUT) -> ModelDefinition:
    """The trained network for `batch` images at once: x [batch, 64] -> logits [batch, 10]."""
    w0, w1, w2 = parameters.weights
    b0, b1, b2 = parameters.biases

    def digits(x: Any) -> Any:
        hidden = ops.gelu(x @ w0 + b0)
        hidden = ops.gelu(hidden @ w1 + b1)
        return hidden @ w2 + b2

    return ModelDefinition("digits", digits, {"x": TensorType((batch, reference.LAYERS[0]))}, ("logits",))


def build() -> ModelDefinition:
    """The trained network for all held-out images."""
    return network(train(load_data()))

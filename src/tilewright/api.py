"""The compiler's entrance for Python programs and notebooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewright.compiler.progress import Progress
from tilewright.graph import Graph
from tilewright.models.definition import ModelDefinition, define

if TYPE_CHECKING:
    from tilewright.package import Package


def compile(
    model: Graph | ModelDefinition | Callable[..., Any],
    /,
    *,
    tiles: int = 1472,
    check: bool = False,
    precision: str = "float16",
    stochastic_rounding: bool = False,
    progress: Progress | None = None,
) -> Package:
    """Package of a model, ready to save or to run.

    Args:
        model: a graph, a model, or a function whose inputs are declared with `tilewright.model` or by
            annotations.
        tiles: how many of the chip's 1,472 tiles may hold data and compute.
        check: verify what is emitted by independent means; takes longer.
        precision: "float16", or "float32" for graphs of products, sums and GeLU.
        stochastic_rounding: round results to float16 at random, so that the mean is exact.
        progress: told of the passes as they run.

    Raises UnsupportedError listing every operator that cannot be compiled, PlacementError when the model
    does not fit the tiles, and for functions what `trace` raises.
    """
    from tilewright.compiler.pipeline import compile_graph

    if not isinstance(model, Graph):
        model = (model if isinstance(model, ModelDefinition) else define(model)).graph()
    return compile_graph(
        model,
        tiles=tiles,
        check=check,
        precision=precision,
        stochastic_rounding=stochastic_rounding,
        progress=progress,
    )

"""One compile: verify the graph, compute what is constant, then hand it to the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..graph import Graph
from ..package.records import Package
from .folding import fold_constants
from .numerics import Numerics
from .progress import Progress
from .unrolling import unroll_loops

if TYPE_CHECKING:
    from ..ipu21.fit import Fitted


def simplified(graph: Graph) -> Graph:
    """The same function in the terms that plans are made of."""
    return fold_constants(unroll_loops(graph))


def compile_graph(
    graph: Graph,
    *,
    tiles: int = 1472,
    check: bool = False,
    precision: str = "float16",
    stochastic_rounding: bool = False,
    progress: Progress | None = None,
) -> Package:
    """Compile a graph into a package for one chip, which keeps every rule of `validate`.

    Args:
        graph: what to compute.
        tiles: how many tiles may hold data and compute; the others only keep the barriers.
        check: verify what is emitted by independent means (exchange rows); takes longer.
        precision, stochastic_rounding: see `Numerics`.
        progress: called with the name of each stage as it begins.

    Raises GraphError, UnsupportedError (listing everything unsupported at once), PlacementError.
    """
    from ..ipu21.compile import compile_for_ipu21

    graph.verify()
    numerics = Numerics(precision, stochastic_rounding)
    return compile_for_ipu21(
        simplified(graph), tiles=tiles, check=check, numerics=numerics, progress=progress
    )


def plan_only(
    graph: Graph,
    *,
    tiles: int = 1472,
    precision: str = "float16",
    progress: Progress | None = None,
) -> Fitted:
    """What `compile_graph` would do with a graph, planned and placed but not emitted; for reports."""
    from ..ipu21.compile import plan_for_ipu21

    graph.verify()
    return plan_for_ipu21(simplified(graph), tiles=tiles, numerics=Numerics(precision), progress=progress)

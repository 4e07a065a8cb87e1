"""Graphs on disk: `name.graph` holds the text, `name.safetensors` beside it the constants."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import GraphError, UsageError
from tilewright.files import read_file, write_whole
from tilewright.tensor_type import TensorType

from .graph import Graph
from .parse import parse_graph
from .text import print_graph

MAX_TEXT_BYTES = 64 * 2**20
"""Bound on a text file, far above any readable graph."""


def save_graph(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write `graph` to `path` (ending `.graph`) and its constants beside it. Each file appears whole."""
    from safetensors.numpy import save

    target = _text_path(path)
    graph.verify()
    if graph.constants:
        data = save({value.name: np.ascontiguousarray(array) for value, array in graph.constants})
        write_whole(target.with_suffix(".safetensors"), data)
    write_whole(target, print_graph(graph).encode())


def load_graph(path: str | os.PathLike[str]) -> Graph:
    """The graph that `save_graph` wrote.

    Raises UsageError for files that cannot be read and GraphError, with file, line and column, for text or
    data that is wrong. Tensors that the text does not name are an error too: they are likely a mistake.
    """
    target = _text_path(path)
    try:
        source = read_file(target, limit=MAX_TEXT_BYTES).decode()
    except UnicodeDecodeError as error:
        raise GraphError(f"not UTF-8 text at byte {error.start}", where=str(target)) from error
    if not source.strip():
        raise GraphError("the file is empty", where=str(target))
    weights = _Weights(target.with_suffix(".safetensors"))
    graph = parse_graph(source, weights.take, filename=str(target))
    weights.check_all_taken()
    return graph


def _text_path(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    if target.suffix != ".graph":
        raise UsageError("the name of a graph's text form ends in .graph", where=str(target))
    return target


class _Weights:
    """The safetensors file beside a graph; opened when the first constant asks."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._arrays: dict[str, NDArray[Any]] | None = None
        self._taken: set[str] = set()

    def take(self, name: str, type_: TensorType) -> NDArray[Any]:
        """Data of one constant, read-only. Raises GraphError when missing or of another type."""
        arrays = self._load()
        if name not in arrays:
            raise GraphError(f"{self._path} has no tensor {name!r}")
        array = arrays[name]
        if array.shape != type_.shape or array.dtype != np.dtype(type_.dtype):
            found = f"{array.dtype}{list(array.shape)}"
            raise GraphError(f"constant {name!r} is declared {type_}, {self._path} holds {found}")
        array.flags.writeable = False
        self._taken.add(name)
        return array

    def check_all_taken(self) -> None:
        """Raise GraphError when the file holds tensors nobody asked for."""
        unknown = sorted(set(self._load()) - self._taken) if self._path.exists() else []
        if unknown:
            raise GraphError(
                f"tensor {unknown[0]!r} is no constant of the graph beside it", where=str(self._path)
            )

    def _load(self) -> dict[str, NDArray[Any]]:
        from safetensors import SafetensorError
        from safetensors.numpy import load

        if self._arrays is None:
            data = read_file(self._path)
            try:
                self._arrays = {name: np.array(array) for name, array in load(data).items()}
            except (SafetensorError, KeyError, ValueError, TypeError) as error:
                raise GraphError(f"not a safetensors file: {error}", where=str(self._path)) from error
        return self._arrays

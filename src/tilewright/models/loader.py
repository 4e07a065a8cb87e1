"""What MODEL means on the command line: a ready model, `file.py:function`, or `file.graph`.

A ready model may have settings: `minilm:batch=8,tokens=64`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from tilewright.errors import GraphError, TilewrightError, UsageError
from tilewright.files import read_file

from . import MODELS, build

if TYPE_CHECKING:
    from tilewright.graph import Graph

MAX_SOURCE_BYTES = 16 * 2**20
"""Bound on a Python file that is run as a model."""


def load_model(text: str) -> Graph:
    """The graph that `text` names. Running `file.py:function` runs the file's Python code.

    Raises UsageError (no such model, file or function), GraphError and its kin (wrong contents, with the
    line), MissingDependencyError.
    """
    name, _, settings = text.partition(":")
    if name in MODELS:
        return build(name, **_settings(settings, text)).graph()
    path, _, function = text.rpartition(":")
    if path.endswith(".py"):
        return _from_python(Path(path), function)
    if text.endswith(".graph"):
        from tilewright.graph import load_graph

        return load_graph(text)
    if text.endswith(".py"):
        raise UsageError("which function of the file?", where=text, hint=f"write {text}:function")
    if not any(mark in text for mark in "/\\.:"):
        return build(text).graph()  # which says what there is
    raise UsageError(
        f"{text!r} names no model",
        hint=f"give {', '.join(MODELS)}, file.py:function, or file.graph",
    )


def _settings(text: str, where: str) -> dict[str, int]:
    """`NAME=NUMBER,...`. Raises UsageError."""
    found: dict[str, int] = {}
    for part in text.split(",") if text else []:
        key, _, value = part.partition("=")
        if not key.isidentifier() or not value.isascii() or not value.isdigit() or len(value) > 9:
            raise UsageError(
                f"{part!r} is no setting", where=where, hint="write NAME=NUMBER, several with commas"
            )
        found[key] = int(value)
    return found


def _from_python(path: Path, name: str) -> Graph:
    from .definition import ModelDefinition, define

    module = _run(path)
    found = getattr(module, name, None)
    if isinstance(found, ModelDefinition):
        return found.graph()
    if found is None:
        functions = [key for key, value in vars(module).items() if _is_own_function(value, module)]
        hint = f"it defines {', '.join(functions)}" if functions else "it defines no function"
        raise UsageError(f"there is no function {name!r}", where=str(path), hint=hint)
    if not callable(found):
        raise UsageError(f"{name!r} is no function", where=str(path))
    try:
        return define(found).graph()
    except GraphError as error:
        error.where = error.where or str(path)
        raise


def _is_own_function(value: object, module: ModuleType) -> bool:
    return callable(value) and getattr(value, "__module__", None) == module.__name__


def _run(path: Path) -> ModuleType:
    """Execute a Python file as a module, with its folder first on the search path while it runs."""
    source = read_file(path, limit=MAX_SOURCE_BYTES)
    # A name made from the path, so that two files of the same name do not meet in sys.modules.
    name = f"tilewright_model_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _search_path(str(path.resolve().parent)):
        try:
            exec(compile(source, str(path), "exec"), module.__dict__)
        except TilewrightError:
            raise
        except SyntaxError as error:
            raise GraphError(f"{error.msg}", where=f"{path}:{error.lineno or 1}") from error
        except (Exception, SystemExit) as error:
            raise _raised(error, path) from error
    return module


def _raised(error: BaseException, path: Path) -> GraphError:
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
    ]
    where = f"{path}:{lines[-1]}" if lines else str(path)
    text = " ".join(str(error).split())
    return GraphError(f"{type(error).__name__}: {text}", where=where)


@contextmanager
def _search_path(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)

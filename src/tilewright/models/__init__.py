"""Ready models, by name. Each is a module here with a function `build() -> ModelDefinition`."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING

from tilewright.errors import UsageError

if TYPE_CHECKING:
    from .definition import ModelDefinition

MODELS = ("digits",)
"""Names of the ready models."""


def build(name: str) -> ModelDefinition:
    """The ready model called `name`. Raises UsageError that lists what there is."""
    if name not in MODELS:
        near = difflib.get_close_matches(name, MODELS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(MODELS)}"
        raise UsageError(f"unknown model {name!r}", hint=hint)
    definition: ModelDefinition = import_module(f"{__name__}.{name}").build()
    return definition

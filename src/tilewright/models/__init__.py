"""Ready models, by name. Each is a module here with a function `build(...) -> ModelDefinition`.

The parameters of that function, if it has any, are whole numbers with defaults: the settings of the model.
"""

from __future__ import annotations

import difflib
import inspect
from importlib import import_module
from typing import TYPE_CHECKING

from tilewright.errors import UsageError

if TYPE_CHECKING:
    from .definition import ModelDefinition

MODELS = ("digits", "minilm")
"""Names of the ready models."""


def build(name: str, **settings: int) -> ModelDefinition:
    """The ready model called `name`. Raises UsageError that lists what there is, for a setting too."""
    if name not in MODELS:
        near = difflib.get_close_matches(name, MODELS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(MODELS)}"
        raise UsageError(f"unknown model {name!r}", hint=hint)
    make = import_module(f"{__name__}.{name}").build
    known = list(inspect.signature(make).parameters)
    for setting in settings:
        if setting not in known:
            hint = f"it has {', '.join(known)}" if known else "it has none"
            raise UsageError(f"{name} has no setting {setting!r}", hint=hint)
    definition: ModelDefinition = make(**settings)
    return definition

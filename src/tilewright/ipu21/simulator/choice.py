"""The engines by name."""

from __future__ import annotations

from tilewright.errors import UsageError

from .checks import Checks
from .engine import Engines

TRANSLATED, REFERENCE = "translated", "reference"


def check_engines(name: str) -> str:
    """The name of an engine. Raises UsageError for any other."""
    if name not in (TRANSLATED, REFERENCE):
        raise UsageError(f"there is no engine {name!r}", hint=f"{TRANSLATED} or {REFERENCE}")
    return name


def make_engines(name: str, checks: Checks) -> Engines:
    """The engines of a name. Checks of single accesses need the reference engine and get it.

    Raises UsageError for an unknown name.
    """
    # Each brings a compiler with it: only the one that is needed is loaded.
    if check_engines(name) == TRANSLATED and not checks.singly:
        from .translate.tiles import TranslatedTiles

        return TranslatedTiles(checks)
    from .tiles import CompiledTiles

    return CompiledTiles(checks)

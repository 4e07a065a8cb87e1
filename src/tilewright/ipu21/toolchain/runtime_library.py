"""C functions that compiled code calls and no object defines: divisions, doubles, `memcpy`, `sinf`, ...

Sources in our own assembly lie in `c_runtime`. As with an archive, a link takes from there only what nothing
else defines, and of that only what is reached: every name there is weak.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

from .archives import take_needed
from .assembler import assemble
from .objects import ObjectFile

FOLDER = Path(__file__).parent / "c_runtime"
_NAMES = re.compile(r"^(?:function|also|stop|strict_compare|instruction_only) (\w+)", re.MULTILINE)
"""The macros by which a source there defines a function, and its name."""


@cache
def members() -> dict[str, str]:
    """Name of a function -> the source that defines it."""
    return {
        name: path.name for path in sorted(FOLDER.glob("*.S")) for name in _NAMES.findall(path.read_text())
    }


@cache
def member(source: str) -> ObjectFile:
    """The object of one source of the library. It is shared: change nothing in it."""
    text = (FOLDER / source).read_text()
    return assemble(text, filename=f"c_runtime/{source}", include_dirs=[FOLDER])


def runtime_objects(
    objects: Sequence[ObjectFile], roots: Sequence[str], externals: Collection[str]
) -> list[ObjectFile]:
    """The objects of the library that `objects` and the names in `roots` need, in the order of need."""

    def provider(name: str) -> ObjectFile | None:
        source = members().get(name)
        return None if source is None else member(source)

    return take_needed(objects, provider, roots, externals)

"""C functions that compiled code calls and no object defines: divisions, doubles, `memcpy`, `sinf`, ...

Sources in our own assembly lie in `c_runtime`. As with an archive, a link takes from there only what nothing
else defines, and of that only what is reached: every name there is weak.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

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
    defined = set(externals)
    wanted: dict[str, None] = dict.fromkeys(roots)
    taken: dict[str, ObjectFile] = {}
    pending = list(objects)
    while True:
        for item in pending:
            for symbol in item.symbols:
                if symbol.binding == "local":
                    continue
                if symbol.defined:
                    defined.add(symbol.name)
                elif symbol.binding != "weak":
                    wanted[symbol.name] = None
        sources = [members()[name] for name in wanted if name not in defined and name in members()]
        new = [source for source in dict.fromkeys(sources) if source not in taken]
        if not new:
            return list(taken.values())
        pending = [member(source) for source in new]
        taken.update(zip(new, pending, strict=True))

"""The assembly of a package's kernels, with the addresses it has there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.errors import UsageError

if TYPE_CHECKING:
    from tilewright.package import Package

_AROUND = 10
_SUFFIX = ".S"


def kernel_listing(package: Package, wanted: str) -> list[str]:
    """Lines `number  address  text` of `NAME`, `NAME.S` or, only those around it, `NAME.S:LINE`.

    Raises UsageError.
    """
    from tilewright.debugging.kernel_source import kernel_text

    name, _, line = wanted.partition(":")
    file = name.removesuffix(_SUFFIX) + _SUFFIX
    if file not in package.lines.files:
        known = ", ".join(package.lines.files)
        raise UsageError(
            f"no code of this package was written in {file}",
            hint=f"it has {known}" if known else "it was compiled by a version that kept no source lines",
        )
    text = kernel_text(file)
    if not text:
        raise UsageError(f"this version has no kernel {file}", hint="use the version that made the package")
    first, last = 1, len(text)
    if line:
        if not line.isdigit() or not 1 <= int(line) <= len(text):
            raise UsageError(f"{line!r} is no line of {file}", hint=f"it has lines 1 to {len(text)}")
        first, last = max(int(line) - _AROUND, 1), min(int(line) + _AROUND, len(text))
    rows = package.lines.rows
    own = rows[(rows["file"] == package.lines.files.index(file)) & (rows["line"] > 0)]
    places: dict[int, int] = {}
    for row in own[::-1]:
        places[int(row["line"])] = int(row["address"])
    return [
        f"{number:>5}  {f'{places[number]:#x}' if number in places else '':<8}  {text[number - 1]}".rstrip()
        for number in range(first, last + 1)
    ]

"""The command line's words for memory, vertex states and registers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import UsageError
from tilewright.files import read_file
from tilewright.ipu21.machine.memory import TILE_BYTES

from .bench import TileBench
from .memory import DTYPES, Buffer, VertexField, dtype_of, fitting_float, word_of

MEMORY_HELP = "NAME[@PLACE]=CONTENT"
_SHAPE = re.compile(r"\d+(x\d+)*")
_GENERATED = ("zeros", "ones", "range", "random", "empty")
_SEED = 0


@dataclass(frozen=True)
class View:
    """What to show or save: memory with a type and shape, and where to write it (or nowhere)."""

    name: str
    buffer: Buffer
    path: Path | None = None


def place_memory(bench: TileBench, text: str) -> Buffer:
    """Carry out one `NAME[@PLACE]=CONTENT`.

    CONTENT is one of

    - `@FILE.npy` or `@FILE.npy:TYPE`: an array, converted if a type is given; any other file is raw bytes
    - `zeros:TYPE:SHAPE`, `ones:..`, `range:..` (0, 1, 2, ...), `random:..` (normal or any integer, always the
      same), `empty:..` (named, but not written)
    - `TYPE:VALUE,VALUE,...`

    SHAPE is like 64 or 4x16. PLACE is an address, a symbol or buffer with an offset (`table+8`), `region0` or
    `region1`; without it the operand is placed where there is room, in a memory element of its own if
    possible. Raises UsageError.
    """
    left, separator, content = text.partition("=")
    name, _, place = left.partition("@")
    if not separator or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise UsageError(f"{text!r} is no operand", where="--mem", hint=f"write {MEMORY_HELP}")
    region = {"region0": 0, "region1": 1}.get(place)
    at = place if place and region is None else None
    where = f"--mem {name}"
    kind, _, rest = content.partition(":")
    if kind == "empty":
        dtype, shape = _type_and_shape(rest, where)
        return bench.reserve(name, dtype, shape, at=at, region=region)
    return bench.put(name, read_content(content, where), at=at, region=region)


def read_content(content: str, where: str) -> NDArray[Any]:
    """The array a CONTENT stands for (not `empty`). Raises UsageError."""
    if content.startswith("@"):
        return _from_file(content[1:], where)
    kind, separator, rest = content.partition(":")
    if kind in _GENERATED and separator:
        dtype, shape = _type_and_shape(rest, where)
        return _generated(kind, dtype, shape)
    if kind in DTYPES and separator:
        return np.array([_element(word.strip(), kind, where) for word in rest.split(",")], dtype_of(kind))
    raise UsageError(
        f"{content!r} is no content",
        where=where,
        hint="write @file.npy, zeros:f16:64, random:f32:4x16 or u32:1,2,3",
    )


def _element(word: str, kind: str, where: str) -> float | int:
    """A number of an element type. Raises UsageError for what the type cannot hold."""
    dtype = dtype_of(kind)
    try:
        if dtype.kind == "f":
            number = float(int(word, 0)) if word[:2].lower() == "0x" else float(word)
            return fitting_float(number, dtype, named="inf" in word.lower())
        value = int(word, 0)
        if np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            return value
    except (ValueError, OverflowError):
        pass
    raise UsageError(f"{word!r} is no {kind} number", where=where)


def _from_file(text: str, where: str) -> NDArray[Any]:
    path, separator, kind = text.rpartition(":")
    if not separator or kind not in DTYPES:
        path, kind = text, ""
    if not path.endswith(".npy"):
        data = np.frombuffer(read_file(path, limit=TILE_BYTES), dtype=np.uint8)
        return data.view(dtype_of(kind)) if kind else data
    try:
        array: NDArray[Any] = np.load(path, allow_pickle=False, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"cannot read {path}: {error}", where=where) from None
    if array.nbytes > TILE_BYTES * 8:
        raise UsageError(f"{array.nbytes} bytes do not fit a tile", where=where)
    if kind:
        return _converted(np.asarray(array), dtype_of(kind), where)
    if array.dtype.kind not in "fiub":
        raise UsageError(f"{path} holds {array.dtype}", where=where, hint="give a type: @file.npy:f16")
    return np.asarray(array)


def _converted(array: NDArray[Any], dtype: np.dtype[Any], where: str) -> NDArray[Any]:
    """An array of numbers in another type. Raises UsageError naming the first element that it cannot hold."""
    if array.dtype.kind not in "fiub":
        raise UsageError(f"elements of type {array.dtype} are no numbers", where=where)
    with np.errstate(over="ignore", invalid="ignore"):
        result = array.astype(dtype)
        if dtype.kind == "f":
            wrong = np.isfinite(array) & ~np.isfinite(result)
        else:
            limits = np.iinfo(dtype)
            wrong = ~((array >= limits.min) & (array <= limits.max) & (array == np.floor(array)))
    if wrong.any():
        first = tuple(int(index) for index in np.argwhere(wrong)[0])
        raise UsageError(f"element {first} is {array[first]}, which {dtype.name} cannot hold", where=where)
    return result


def _generated(kind: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    count = int(np.prod(shape, dtype=np.int64))
    if kind == "zeros":
        return np.zeros(shape, dtype)
    if kind == "ones":
        return np.ones(shape, dtype)
    if kind == "range":
        return np.arange(count).astype(dtype).reshape(shape)
    generator = np.random.default_rng(_SEED)
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    limits = np.iinfo(dtype)
    return generator.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def _type_and_shape(text: str, where: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    kind, _, shape = text.partition(":")
    if not _SHAPE.fullmatch(shape):
        raise UsageError(f"{shape!r} is no shape", where=where, hint="write TYPE:SHAPE, such as f16:4x16")
    sizes = tuple(int(size) for size in shape.split("x"))
    dtype = dtype_of(kind)
    if np.prod(sizes, dtype=np.float64) * dtype.itemsize > TILE_BYTES:
        raise UsageError(f"{shape} elements of {kind} do not fit a tile", where=where)
    return dtype, sizes


def vertex_fields(bench: TileBench, text: str) -> list[VertexField]:
    """The fields of a `--state`: `TYPE:NUMBER`, or a name or number as a 32-bit word; commas between.

    Raises UsageError.
    """
    fields = []
    for word in text.split(","):
        kind, separator, number = word.strip().partition(":")
        if not separator:
            fields.append(VertexField(dtype_of("u32"), word_of(bench.value(kind), f"--state {text}")))
            continue
        dtype = dtype_of(kind)
        known = re.match(r"[A-Za-z_.$]", number) if dtype.kind != "f" else None
        word = str(bench.value(number)) if known else number
        fields.append(VertexField(dtype, _element(word, kind, f"--state {text}")))
    return fields


def view_of(bench: TileBench, text: str, *, saved: bool = False) -> View:
    """What `NAME`, `NAME:TYPE` or `NAME:TYPE:SHAPE` shows; NAME is an operand, a symbol or an address, maybe
    with an offset. The file it is to be `saved` in follows behind `=`. Raises UsageError.
    """
    what, separator, path = text.partition("=")
    if saved and not path:
        raise UsageError("the file is missing", where=text, hint="write NAME:TYPE:SHAPE=FILE.npy")
    if separator and not saved:
        raise UsageError("--show writes no file", where=text, hint="use --out")
    name, _, rest = what.partition(":")
    known = bench.buffers.get(name)
    if not rest:
        if known is None:
            raise UsageError(
                f"{name} has no type", where=text, hint="write NAME:TYPE:SHAPE, such as y:f16:64"
            )
        return View(name, known, Path(path) if separator else None)
    kind, _, shape = rest.partition(":")
    if shape:
        dtype, sizes = _type_and_shape(rest, text)
    elif known is not None:
        dtype = dtype_of(kind)
        sizes = (known.size // dtype.itemsize,)
    else:
        raise UsageError(f"{name} has no shape", where=text, hint="write NAME:TYPE:SHAPE, such as y:f16:64")
    buffer = Buffer(name, bench.value(name), dtype, sizes)
    bench.array(buffer)  # refuses what lies outside the tile
    return View(name, buffer, Path(path) if separator else None)


def register_value(text: str) -> tuple[str, str]:
    """Name and value of `m2=0x50000`. Raises UsageError."""
    name, separator, value = text.partition("=")
    if not separator or not value:
        raise UsageError(f"{text!r} sets nothing", hint="write REGISTER=VALUE, such as m2=0x50000 or m3=in")
    return name.strip(), value.strip()


def vertex_symbol(name: str) -> str:
    """The entry symbol of a vertex written as in a graph program: `ns::Type<half,true>` (known scheme)."""
    if name.startswith("__runCodelet_"):
        return name
    plain, _, arguments = name.partition("<")
    words = [plain, *arguments.rstrip("> ").split(",")] if arguments else [plain]
    # An underscore of a name becomes three, `::` two, a blank one. Template arguments are set off from the
    # name by three, from each other by one.
    parts = [word.strip().replace("_", "___").replace("::", "__").replace(" ", "_") for word in words]
    return "__runCodelet_" + parts[0] + ("___" + "_".join(parts[1:]) if arguments else "")

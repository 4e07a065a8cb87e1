"""Every number of a package, one at a time, at its extremes: an error by name, or a package that keeps it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from package_sample import make_package

from tilewright.errors import PackageError
from tilewright.package import read_package, validate, write_package
from tilewright.package.records import Package

pytestmark = pytest.mark.unit

Place = tuple[str, Callable[[int], None]]


def places(record: object, name: str = "package") -> Iterator[Place]:
    """Every integer field; of lists the first and last item, of tables the first and last row."""
    for field in dataclasses.fields(record):  # type: ignore[arg-type]  # always a dataclass here
        value, path = getattr(record, field.name), f"{name}.{field.name}"
        if isinstance(value, int):
            yield path, lambda number, record=record, key=field.name: setattr(record, key, number)
        elif dataclasses.is_dataclass(value):
            yield from places(value, path)
        elif isinstance(value, np.ndarray):
            yield from cells(value, path)
        elif isinstance(value, list):
            for index in sorted({0, len(value) - 1} if value else set()):
                yield from items(value, index, f"{path}[{index}]")


def items(values: list[object], index: int, path: str) -> Iterator[Place]:
    item = values[index]
    if isinstance(item, int):
        yield path, lambda number: values.__setitem__(index, number)
    elif isinstance(item, np.ndarray):
        yield from cells(item, path)
    elif dataclasses.is_dataclass(item):
        yield from places(item, path)


def cells(table: np.ndarray, path: str) -> Iterator[Place]:
    for key in table.dtype.names or ():
        largest = np.iinfo(table.dtype[key]).max
        for row in sorted({0, len(table) - 1} if len(table) else set()):

            def put(number: int, row: int = row, key: str = key, largest: int = int(largest)) -> None:
                table[key][row] = number & largest

            yield f"{path}[{row}].{key}", put


NAMES = [name for name, _ in places(make_package())]


def setter(package: Package, name: str) -> Callable[[int], None]:
    return dict(places(package))[name]


def test_all_kinds_of_numbers_are_visited() -> None:
    for part in ("tiles[1471].image", "segments[2].blob_offset", "slices[1].file_offset", "attach_order[1]"):
        assert any(part in name for name in NAMES), part
    assert len(NAMES) > 100


@pytest.mark.parametrize("number", [2**32 - 1, 2**64 - 1, -1, 4])
def test_one_number_at_an_extreme(number: int) -> None:
    kept = 0
    for name in NAMES[:: 1 if number > 4 else 2]:
        package = make_package()
        setter(package, name)(number)
        try:
            validate(package)
        except PackageError as error:
            assert str(error), name
            continue
        data = write_package(package)
        assert write_package(read_package(data)) == data, name
        kept += 1
    assert kept < len(NAMES) / 4, "most numbers of a package depend on each other"

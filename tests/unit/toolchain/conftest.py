"""Helpers of the tool chain's tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.ipu21.toolchain import AssemblyFaults, assemble


@pytest.fixture
def words() -> Callable[[str], list[int]]:
    """Assemble statements into .text and give its words."""

    def run(source: str) -> list[int]:
        data = assemble(source).section(".text").data
        return [int.from_bytes(data[index : index + 4], "little") for index in range(0, len(data), 4)]

    return run


@pytest.fixture
def faults() -> Callable[[str], AssemblyFaults]:
    """Assemble a source that must be refused."""

    def run(source: str) -> AssemblyFaults:
        with pytest.raises(AssemblyFaults) as caught:
            assemble(source, filename="kernel.S")
        return caught.value

    return run

"""Native loops: they do what their plain forms do, are kept, and notice every change they depend on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from tilewright.ipu21.compile import prepare
from tilewright.native import building, loops
from tilewright.native.loops import Loop, compiled

pytestmark = pytest.mark.unit

FACTOR = 3


def _scaled(value: int) -> int:
    return FACTOR * value


scaled = compiled(_scaled, "i", "i")


def _everything(
    numbers: Any, table: Any, small: Any, bytes_: Any, words: Any, count: int
) -> tuple[int, int, int]:
    total = 0
    for i in range(count):
        total += numbers[i] + table[1, i] - small[i, 0]
        words[i] = scaled(numbers[i])
        bytes_[0, i] = 255 - i
    return total, len(table), count


everything = compiled(_everything, "3", "vmsuwi")


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for loop in (scaled, everything):
        for name in ("_native", "digest"):
            loop.__dict__.pop(name, None)


def _arguments() -> list[Any]:
    return [
        np.array([1, -2, 1 << 40]),
        np.arange(6).reshape(2, 3),
        np.array([[7, 0], [8, 0], [9, 0]], np.int32),
        np.zeros((2, 3), np.uint8),
        np.zeros(3, np.uint32),
    ]


def test_every_kind_of_argument_and_result() -> None:
    native, plain = _arguments(), _arguments()
    with np.errstate(over="ignore"):
        plain[4] = np.zeros(3, np.int64)
        expected = _everything(*plain, 3)
    assert everything(*native, 3) == expected
    assert native[3].tolist() == plain[3].tolist() == [[255, 254, 253], [0, 0, 0]]
    assert native[4].tolist() == (plain[4] & 0xFFFFFFFF).tolist()


def test_results_of_one_number_a_truth_and_nothing() -> None:
    assert scaled(-5) == -15
    assert Loop(lambda a, b: a < b, "b", "ii")(1, 2) is True
    assert Loop(lambda a, b: a < b, "b", "ii")(2, 1) is False
    numbers = np.zeros(2, np.int64)

    def fill(into: Any, value: int) -> None:
        into[1] = value

    assert Loop(fill, "-", "vi")(numbers, 9) is None
    assert numbers.tolist() == [0, 9]


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(3, np.int32),
        np.zeros((3, 1), np.int64),
        np.zeros(6, np.int64)[::2],
        4,
        [1, 2, 3],
    ],
)
def test_other_arrays_are_refused(wrong: Any) -> None:
    first, *others = _arguments()
    with pytest.raises(TypeError, match="everything takes"):
        everything(wrong, *others, 3)
    with pytest.raises(TypeError, match="everything takes"):
        everything(first, *others, first)


def test_what_is_kept_is_loaded_and_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert scaled(2) == 6
    (kept,) = (tmp_path / "cache" / "tilewright" / "loops").iterdir()
    del scaled.__dict__["_native"]
    monkeypatch.setattr(building, "object_of", None)
    assert scaled(2) == 6
    kept.write_bytes(kept.read_bytes()[:-1])
    del scaled.__dict__["_native"]
    with pytest.raises(TypeError):
        scaled(2)


def test_where_nothing_can_be_kept_loops_still_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert scaled(2) == 6


def _again(function: Any, **changed: Any) -> Any:
    return FunctionType(function.__code__, {**function.__globals__, **changed}, function.__name__)


def test_the_digest_notices_code_constants_and_what_is_called() -> None:
    assert Loop(_again(_scaled), "i", "i").digest == scaled.digest
    assert Loop(_again(_scaled, FACTOR=4), "i", "i").digest != scaled.digest
    assert Loop(_scaled, "b", "i").digest != scaled.digest
    assert Loop(lambda value: FACTOR * value, "i", "i").digest == scaled.digest
    assert Loop(lambda value: FACTOR + value, "i", "i").digest != scaled.digest
    assert Loop(lambda value: 5 * value, "i", "i").digest != Loop(lambda value: 6 * value, "i", "i").digest
    other = Loop(_again(_scaled, FACTOR=4), "i", "i")
    same, changed = _again(_everything), _again(_everything, scaled=other)
    assert Loop(same, "3", "vmsuwi").digest == everything.digest
    assert Loop(changed, "3", "vmsuwi").digest != everything.digest
    assert Loop(changed, "3", "vmsuwi")(*(arguments := _arguments()), 3)
    assert arguments[4][0] == 4


def test_a_loop_that_reads_what_no_digest_notices_is_refused() -> None:
    loop = Loop(_again(_scaled, FACTOR=2.5), "i", "i")
    with pytest.raises(TypeError, match="scaled reads FACTOR"):
        loop(1)


def test_a_loop_that_allocates_is_refused() -> None:
    numba = pytest.importorskip("numba")

    def allocating(count: int) -> int:
        return len([count, count])

    with pytest.raises(numba.core.errors.NumbaError):
        Loop(allocating, "i", "i")(3)


def test_loops_that_are_kept_need_no_numba(tmp_path: Path) -> None:
    program = (
        "import sys, numpy as np\n"
        "from tilewright.ipu21.fabric.colouring import colour\n"
        "colours = np.zeros(2, np.int64)\n"
        "colour(np.array([0, 0]), np.array([1, 2]), np.arange(2), 2, colours)\n"
        "print(colours.tolist(), 'numba' in sys.modules)\n"
    )
    outputs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert outputs == ["[0, 1] True\n", "[0, 1] False\n"]


def test_only_loops_for_python_have_to_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_LOOPS", [scaled, everything])
    assert loops.missing() == [everything]
    everything.make()
    assert loops.missing() == []
    del everything.__dict__["_native"]
    assert loops.missing() == [], "it is kept"
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert loops.missing() == [everything]


def test_the_compiler_knows_its_loops_and_makes_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = {"place", "choose", "sweep", "first_fit", "search", "colour", "sequence_rows", "encode"}
    assert calls <= {loop.name for loop in loops._LOOPS}
    monkeypatch.setattr(loops, "_LOOPS", [everything])
    stages: list[str] = []
    assert prepare(stages.append) > 0
    assert stages == ["build the compiler's native code, once (1 of 1)"]
    assert prepare(stages.append) == 0
    assert len(stages) == 1

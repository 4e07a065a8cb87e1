"""The element-wise kernels, copies and fills against NumPy, over counts that leave workers idle."""

from __future__ import annotations

import numpy as np
import pytest
from guarded_runs import guarded
from kernel_runs import DATA, call, halves, run, twice
from numpy.typing import NDArray

from tilewright.ipu21.kernels import KERNELS, add, add_row, copy, gelu
from tilewright.ipu21.kernels.paced import way
from tilewright.ipu21.machine.memory import REGION1_BASE

pytestmark = pytest.mark.sim

WORDS = [*range(14), 24, 25, 31, 36, 37, 100, 1000]
PLACES = [
    (DATA, DATA + 0x8000, REGION1_BASE),
    (DATA, DATA + 0x2000, DATA + 0x4000 - 8),
    (DATA, REGION1_BASE, REGION1_BASE + 0x2000),
    (REGION1_BASE, REGION1_BASE + 0x2000, REGION1_BASE + 0x4008),
    (REGION1_BASE + 8, REGION1_BASE + 0x2000, REGION1_BASE + 0x4000),
    (REGION1_BASE, DATA, DATA + 0x8000),
    (DATA + 0x10000, DATA, REGION1_BASE),
    (REGION1_BASE + 8,) * 3,
]
"""Out, first input, second input: elements apart, elements shared, interleaved with either parity, apart the
other way round, in place.
"""
ROW_PLACES = [
    (DATA, DATA + 0x8000, REGION1_BASE),
    (DATA, DATA + 0x6000, DATA + 0xC000),
    (REGION1_BASE + 16, REGION1_BASE + 0x7000, DATA),
    (REGION1_BASE + 8, REGION1_BASE + 0x7000, DATA),
    (DATA, REGION1_BASE, DATA + 0x8000),
    (REGION1_BASE, DATA, DATA + 0x8000),
]

Halves = NDArray[np.float16]

SPECIAL = np.array(
    [0, 1, -1, 65504, -65504, 300, -300, 41, -41, 6e-8, -6e-8, 5, -5, 0.5, -0.5, 2.5], np.float16
)


def values(words: int, seed: int) -> Halves:
    """4 * words halves, extreme ones among them."""
    result = halves(seed, 4 * words, scale=3)
    result[: min(16, result.size)] = np.roll(SPECIAL, seed)[: result.size]
    return result


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize(("out", "a", "b"), PLACES)
def test_add(words: int, out: int, a: int, b: int) -> None:
    x, y = values(words, 1), values(words, 2)
    inputs = [(a, x), (b, y)] if a != b else [(a, x)]
    outcome = run("add_f16", {"c": out, "a": a, "b": b, "words": words}, inputs, [(out, 8 * words)])
    np.testing.assert_array_equal(outcome.array(out, x), add.reference(x, y if a != b else x))
    assert outcome.cycles == add.cycles(words, way(a, out, words))


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize(("out", "a"), [place[:2] for place in PLACES])
def test_gelu(words: int, out: int, a: int) -> None:
    x = values(words, 3)
    outcome = run("gelu_f16", {"out": out, "x": a, "words": words}, [(a, x)], [(out, 8 * words)])
    found = outcome.array(out, x)
    np.testing.assert_array_equal(found, gelu.reference(x))
    wide = x.astype(np.float64)
    exact = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    # Half an ulp each for x^2, x^3, z, gate and product; z's error counts |z| times in the gate.
    assert np.all(np.abs(found - exact) <= 2.0**-11 * (4 * np.abs(exact) + 0.5) + 1e-7)
    assert outcome.cycles == gelu.cycles(words)


def test_gelu_of_every_half() -> None:
    x = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    x = np.where(np.isfinite(x), x, np.float16(0))
    found = run(
        "gelu_f16",
        {"out": DATA, "x": REGION1_BASE, "words": x.size // 4},
        [(REGION1_BASE, x)],
        [(DATA, x.nbytes)],
    )
    result = found.array(DATA, x)
    np.testing.assert_array_equal(result, gelu.reference(x))
    large = np.abs(x.astype(np.float64)) > 12
    np.testing.assert_array_equal(result[large], np.maximum(x[large], 0))


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 18, 29, 64])
@pytest.mark.parametrize("columns", [0, 1, 2, 3, 4, 5, 7, 12])
@pytest.mark.parametrize(("out", "a", "row"), ROW_PLACES)
def test_add_row(rows: int, columns: int, out: int, a: int, row: int) -> None:
    x, bias = halves(rows, columns, rows, 16), halves(columns, columns, 16)
    arguments = {"a": a, "row": row, "rows": rows, "columns": columns}
    for target in (out, a):
        outcome = run("add_row_f16", {"c": target} | arguments, [(a, x), (row, bias)], [(target, x.nbytes)])
        np.testing.assert_array_equal(outcome.array(target, x), add_row.reference(x, bias))
        assert outcome.cycles == add_row.cycles(rows, columns, add_row.is_paced(a, target))


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize(("out", "a"), [place[:2] for place in PLACES[:-1]])
def test_copy_and_fill(words: int, out: int, a: int) -> None:
    x = np.random.default_rng(words).integers(0, 1 << 63, words, dtype=np.uint64)
    outcome = run("copy_u64", {"destination": out, "source": a, "words": words}, [(a, x)], [(out, x.nbytes)])
    np.testing.assert_array_equal(outcome.array(out, x), copy.copy_reference(x))
    assert outcome.cycles == copy.copy_cycles(words, way(a, out, words))

    arguments = {"destination": out, "words": words, "low": 0x12345678, "high": 0x9ABCDEF0}
    outcome = run("fill_u64", arguments, [], [(out, x.nbytes)])
    np.testing.assert_array_equal(outcome.array(out, x), copy.fill_reference(words, 0x12345678, 0x9ABCDEF0))
    assert outcome.cycles == copy.fill_cycles(words)


@pytest.mark.parametrize("words", [1, 2, 6, 7, 13, 36, 100])
@pytest.mark.parametrize("in_place", [False, True])
def test_nothing_unwritten_or_shared_is_read(words: int, in_place: bool) -> None:
    """On a tile that faults on bytes nobody wrote and on words that two workers share."""
    x, y = values(words, 1), values(words, 2)
    near, far = DATA, REGION1_BASE
    for a in (near, far):
        out = a if in_place else a + 0x2008
        inputs = [(a, x), (near + 0x4000, y)]
        result = guarded("add_f16", {"c": out, "a": a, "b": near + 0x4000, "words": words}, inputs)
        np.testing.assert_array_equal(result.read(out, x.shape, np.float16), add.reference(x, y))
        result = guarded("gelu_f16", {"out": out, "x": a, "words": words}, [(a, x)])
        np.testing.assert_array_equal(result.read(out, x.shape, np.float16), gelu.reference(x))
        if not in_place:
            result = guarded("copy_u64", {"destination": out, "source": a, "words": words}, [(a, x)])
            np.testing.assert_array_equal(result.read(out, x.shape, np.float16), x)


@pytest.mark.parametrize(
    ("symbol", "names"),
    [("add_f16", ("c", "a", "b")), ("gelu_f16", ("out", "x")), ("copy_u64", ("destination", "source"))],
)
def test_a_call_does_not_depend_on_the_one_before(symbol: str, names: tuple[str, ...]) -> None:
    calls, inputs, outputs, expected = [], [], [], []
    for number, words in enumerate((43, 5)):
        places = {name: DATA + 0x8000 * number + 0x1000 * index for index, name in enumerate(names)}
        arrays = [values(words, 10 * number + index) for index in range(1, len(names))]
        calls.append(places | {"words": words})
        inputs += [(places[name], array) for name, array in zip(names[1:], arrays, strict=True)]
        outputs.append((places[names[0]], 8 * words))
        expected.append(KERNELS[symbol].reference(*arrays))
    outcome = call(twice(symbol, calls), "driver", {}, inputs, [*outputs, (0x58680, 96)])
    for (begin, _), result in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(outcome.array(begin, result), result)


def test_formulas_take_arrays() -> None:
    words = np.array([0, 1, 6, 7, 1000])
    for function in (add.cycles, gelu.cycles, copy.copy_cycles, copy.fill_cycles):
        assert function(words).tolist() == [int(function(int(n))) for n in words]
    rows, columns = np.array([0, 5, 64]), np.array([3, 2, 1])
    expected = [int(add_row.cycles(int(r), int(n))) for r, n in zip(rows, columns, strict=True)]
    assert add_row.cycles(rows, columns).tolist() == expected

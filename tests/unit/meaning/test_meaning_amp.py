"""The matrix unit as what it is for: products of matrices, compared with NumPy on exact small numbers."""

from __future__ import annotations

from itertools import pairwise

import meaning_reference as reference
import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.ipu21.isa.meaning import amp
from tilewright.ipu21.isa.meaning.bits import UNKNOWN_OPERAND
from tilewright.ipu21.isa.meaning.products import lane_of

pytestmark = pytest.mark.unit

ROWS = 5


def words_of(halves: NDArray[np.float16]) -> list[int]:
    """Halves as words, low half first."""
    return [int(word) for word in np.ascontiguousarray(halves).view(np.uint32).reshape(-1)]


def unit_of(column: int) -> int:
    """Matrix unit that computes an output column (16 outputs, natural order)."""
    pair, within = divmod(column, 4)
    return 2 * pair + within if within < 2 else 8 + 2 * pair + within - 2


def half_weights(matrix: NDArray[np.float16], phases: int) -> NDArray[np.float32]:
    """Weight array for a [inner, columns] matrix, given the unit of each column."""
    weights = np.zeros(256, dtype=np.float32)
    for column in range(matrix.shape[1]):
        for inner in range(4 * phases):
            weights[64 * (inner // 4) + 16 * (inner % 4) + lane_of(unit_of(column))] = matrix[inner, column]
    return weights


def small(rng: np.random.Generator, *shape: int) -> NDArray[np.float16]:
    return rng.integers(-8, 9, shape).astype(np.float16)


def run_v4(
    a: NDArray[np.float16],
    weights: NDArray[np.float32],
    partials: NDArray[np.float16],
    phases: int,
    engines: int,
) -> NDArray[np.float16]:
    """One stream of `f16v4hihov4amp`: the schedule of fill, steady state and drain."""
    cells = np.zeros(32, dtype=np.float32)
    columns = 4 * phases
    out: list[int] = []
    rows = [*a, np.zeros(4 * phases, dtype=np.float16)]
    for row in range(-1, ROWS + 1):
        following = partials[row + 1] if row + 1 < ROWS else np.zeros(columns, dtype=np.float16)
        for phase in range(phases):
            # Priming may use any phase but 0; with a single phase the first swap only moves zeros.
            flags = engines << 4 | (phase if row >= 0 or phases == 1 else phases - 1)
            x = [0, 0] if row < 0 else words_of(rows[row][4 * phase : 4 * phase + 4])
            p = words_of(following[4 * phase : 4 * phase + 4])
            low, high = amp.f16v4hihov4amp(*x, *p, flags, cells, weights, 0, 0, 0, 0, 0)
            if row >= 1:
                out += [low, high]
    return np.array(out, dtype=np.uint32).view(np.float16).reshape(-1, columns)[:ROWS]


@pytest.mark.parametrize(("engines", "phases"), [(0, 4), (1, 2)])
def test_product_of_halves_with_partial_sums(engines: int, phases: int) -> None:
    rng = np.random.default_rng(phases)
    size = 4 * phases
    a, b, partials = small(rng, ROWS, size), small(rng, size, size), small(rng, ROWS, size)
    found = run_v4(a, half_weights(b, phases), partials, phases, engines)
    np.testing.assert_array_equal(found, (a.astype(np.float64) @ b + partials).astype(np.float16))


def test_single_engine_product() -> None:
    rng = np.random.default_rng(7)
    a, b, partials = small(rng, ROWS, 4), small(rng, 4, 4), small(rng, ROWS, 4)
    weights, cells = half_weights(b, 1), np.zeros(32, dtype=np.float32)
    zero = np.zeros(4, dtype=np.float16)
    results = []
    for x, p in zip([zero, *a, zero], [*partials, zero, zero], strict=True):
        low, high = amp.f16v4hihov4amp(*words_of(x), *words_of(p), 32, cells, weights, 0, 0, 0, 0, 0)
        results.append(np.array([low, high], dtype=np.uint32).view(np.float16))
    expected = a.astype(np.float64) @ b + partials
    np.testing.assert_array_equal(np.array(results[2:]), expected.astype(np.float16))


@pytest.mark.parametrize("kind", ["hiho", "siho", "siso"])
def test_one_set_forms(kind: str) -> None:
    """Eight outputs; unit u is column u."""
    rng = np.random.default_rng(3)
    a, b = small(rng, ROWS, 16), small(rng, 16, 8)
    partials = small(rng, ROWS, 8).astype(np.float32)
    weights, cells = np.zeros(256, dtype=np.float32), np.zeros(32, dtype=np.float32)
    for column in range(8):
        for inner in range(16):
            weights[64 * (inner // 4) + 16 * (inner % 4) + lane_of(column)] = b[inner, column]
    out: list[float] = []
    for row in range(-1, ROWS + 1):
        for phase in range(4):
            x = words_of(a[row][4 * phase : 4 * phase + 4]) if 0 <= row < ROWS else [0, 0]
            p = partials[row + 1][2 * phase : 2 * phase + 2] if row + 1 < ROWS else np.zeros(2, np.float32)
            flags = phase if row >= 0 else 1
            singles = [int(word) for word in p.view(np.uint32)]
            if kind == "hiho":
                packed = words_of(p.astype(np.float16))[0]
                result = [amp.f16v4hihoamp(*x, packed, flags, cells, weights, 0, 0, 0)]
            elif kind == "siho":
                result = [amp.f16v4sihoamp(*x, *singles, flags, cells, weights, 0, 0, 0)]
            else:
                result = list(amp.f16v4sisoamp(*x, *singles, flags, cells, weights))
            if row >= 1:
                raw = np.array(result, dtype=np.uint32)
                out += list(raw.view(np.float32) if kind == "siso" else raw.view(np.float16))
    expected = a.astype(np.float64) @ b + partials
    np.testing.assert_array_equal(np.array(out).reshape(ROWS, 8), expected)


def test_product_of_singles() -> None:
    """`f32sisov2amp`: 16 outputs of 8 inner elements; even phases move set 0, odd ones set 1."""
    rng = np.random.default_rng(5)
    a = rng.integers(-9, 9, (ROWS, 8)).astype(np.float32)
    b = rng.integers(-9, 9, (8, 16)).astype(np.float32)
    partials = rng.integers(-9, 9, (ROWS, 16)).astype(np.float32)
    weights, cells = np.zeros(128, dtype=np.float32), np.zeros(32, dtype=np.float32)
    for column in range(16):
        for inner in range(8):
            weights[2 * (4 * unit_of(column) + inner // 2) + inner % 2] = b[inner, column]
    out: list[float] = []
    for row in range(-1, ROWS + 1):
        for phase in range(8):
            x = reference.single_bits(a[row][phase]) if 0 <= row < ROWS else 0
            p = partials[row + 1][2 * phase : 2 * phase + 2] if row + 1 < ROWS else np.zeros(2, np.float32)
            flags = phase if row >= 0 else (phase or 2)
            result = amp.f32sisov2amp(x, *(int(word) for word in p.view(np.uint32)), flags, cells, weights)
            if row >= 1:
                out += list(np.array(result, dtype=np.uint32).view(np.float32))
    expected = a.astype(np.float64) @ b + partials
    np.testing.assert_array_equal(np.array(out).reshape(ROWS, 16), expected)


@pytest.mark.parametrize("flags", [4, 18, 33, 48, 63])
def test_flags_without_known_meaning_are_reported(flags: int) -> None:
    cells, weights = np.zeros(32, dtype=np.float32), np.zeros(256, dtype=np.float32)
    result = amp.f16v4hihov4amp(0, 0, 0, 0, flags, cells, weights, 0, 0, 0, 0, 0)
    assert result[0] & UNKNOWN_OPERAND


def test_known_flags_are_those_of_the_documented_names() -> None:
    known = [flags for flags in range(64) if amp.flag_units(flags)]
    assert known == [0, 1, 2, 3, 16, 17, 32]
    assert all(amp.flag_units(a) >= amp.flag_units(b) for a, b in pairwise(known))

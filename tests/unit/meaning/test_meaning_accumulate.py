"""Accumulator instructions against their tables, on small numbers whose sums are exact."""

from __future__ import annotations

import meaning_reference as reference
import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.ipu21.isa.meaning import accumulate
from tilewright.ipu21.isa.meaning.bits import UNKNOWN_OPERAND

pytestmark = pytest.mark.unit


def cells(seed: int = 1) -> NDArray[np.float32]:
    return np.random.default_rng(seed).integers(-50, 50, 32).astype(np.float32)


def pack(*values: float) -> int:
    """Two halves in a word, low first."""
    return reference.half_bits(np.float16(values[0])) | reference.half_bits(np.float16(values[1])) << 16


def word(value: float) -> int:
    return reference.single_bits(np.float32(value))


def test_sums_of_singles() -> None:
    values = [1.5, -2.0, 3.0, -4.5]
    words = [word(value) for value in values]
    for function, change in (
        (accumulate.f32v4acc, values),
        (accumulate.f32v4absacc, [abs(value) for value in values]),
        (accumulate.f32v4sqacc, [value * value for value in values]),
    ):
        found, expected = cells(), cells()
        function(*words, found)
        expected[[0, 2, 4, 6]] += np.array(change, dtype=np.float32)
        np.testing.assert_array_equal(found, expected)


def test_sums_of_halves() -> None:
    values = [1.5, -2.0, 3.0, -4.5, 0.25, 6.0, -7.0, 8.0]
    words = [pack(*values[index : index + 2]) for index in range(0, 8, 2)]
    for function, count, change in (
        (accumulate.f16v4acc, 2, values[:4]),
        (accumulate.f16v8acc, 4, values),
        (accumulate.f16v4absacc, 2, [abs(value) for value in values[:4]]),
        (accumulate.f16v8absacc, 4, [abs(value) for value in values]),
        (accumulate.f16v8sqacc, 4, [value * value for value in values]),
    ):
        found, expected = cells(), cells()
        function(*words[:count], found)
        expected[0 : 2 * len(change) : 2] += np.array(change, dtype=np.float32)
        np.testing.assert_array_equal(found, expected)


def test_multiply_accumulate() -> None:
    found, expected = cells(), cells()
    accumulate.f32mac(word(3.0), word(5.0), found)
    expected[0] += 15
    accumulate.f32v2mac(word(2.0), word(3.0), word(4.0), word(-5.0), found)
    expected[[0, 2]] += np.array([8, -15], dtype=np.float32)
    accumulate.f16v2cmac(pack(2.0, 3.0), pack(10.0, 0.5), found)
    expected[0] += 21.5
    accumulate.f16v4cmac(pack(1.0, 2.0), pack(3.0, 4.0), pack(5.0, 6.0), pack(7.0, 8.0), found)
    expected[[0, 2]] += np.array([17, 53], dtype=np.float32)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("flags", [0, 255])
def test_outer_product_is_read_back_column_by_column(flags: int) -> None:
    """A rotation of (p, q) by (c, s), as a published kernel makes it of one outer product and two reads."""
    found = np.zeros(32, np.float32)
    c, s, p, q = 3.0, 4.0, 10.0, -7.0
    accumulate.f32v2aop(word(c), word(s), word(p), word(q), flags, found)
    first = [reference.single(value) for value in accumulate.f32v2gina(0, 0, 0, found)]
    second = [reference.single(value) for value in accumulate.f32v2gina(0, 0, 0, found)]
    assert (first[0] - second[1], first[1] + second[0]) == (c * p - s * q, s * p + c * q)


@pytest.mark.parametrize("chain", [0, 1, 2, 3])
def test_gina_shifts_its_chain(chain: int) -> None:
    found, before = cells(), cells()
    low, high = accumulate.f32v2gina(word(7.0), word(9.0), chain, found)
    first = 16 * (chain >> 1) + (chain & 1)
    assert (low, high) == (word(before[first]), word(before[first + 2]))
    places = np.arange(first, first + 16, 2)
    np.testing.assert_array_equal(found[places], [*before[places[2:]], 7.0, 9.0])
    others = np.setdiff1d(np.arange(32), places)
    np.testing.assert_array_equal(found[others], before[others])
    assert accumulate.f32v2gina(0, 0, 4, found)[0] & UNKNOWN_OPERAND


def test_half_gina_and_gacc_round_on_the_way_out() -> None:
    found = cells()
    found[0], found[2] = 1 + 2.0**-12, -3.0
    assert accumulate.f16v4gacc(found, 0, 0, 0, 0, 0)[0] == pack(1.0, -3.0)
    assert accumulate.f16v2gina(pack(5.0, 6.0), 0, found, 0, 0, 0) == pack(1.0, -3.0)
    assert (found[12], found[14]) == (5.0, 6.0)


def test_axpy_and_mix_deliver_one_instruction_late() -> None:
    found = cells()
    before = found.copy()
    result = accumulate.f32v2axpy(word(2.0), word(3.0), word(1.0), word(-1.0), word(0.5), found)
    assert result == (word(before[0]), word(before[2]))
    assert (found[0], found[2]) == (2.0, 0.5)
    factors = pack(2.0, -1.0)
    mixed = accumulate.f16v4mix(
        pack(1.0, 2.0), pack(3.0, 4.0), pack(5.0, 6.0), pack(7.0, 8.0), factors, found, 0, 0, 0, 0, 0
    )
    assert mixed == (pack(2.0, 0.5), pack(before[4], before[6]))
    np.testing.assert_array_equal(found[[0, 2, 4, 6]], [-3.0, -2.0, -1.0, 0.0])


def test_transpose_of_a_block_of_halves() -> None:
    """The published schedule: two row-pair loads, two column reads; the next loads return the rest."""
    blocks = np.random.default_rng(3).integers(0, 65536, (2, 4, 4), dtype=np.int64)
    state = np.zeros(32, dtype=np.uint32)
    columns: list[tuple[int, int]] = []
    for block in blocks:
        rows = [(int(row[0] | row[1] << 16), int(row[2] | row[3] << 16)) for row in block]
        columns.append(accumulate.f16v4istacc(*rows[0], *rows[1], 0, state))
        columns.append(accumulate.f16v4istacc(*rows[2], *rows[3], 1, state))
        columns.append(accumulate.f16v4stacc(0, state))
        columns.append(accumulate.f16v4stacc(1, state))
    expected = [(int(c[0] | c[1] << 16), int(c[2] | c[3] << 16)) for c in blocks[0].T]
    assert [columns[2], columns[3], columns[4], columns[5]] == expected


def test_sums_of_nans_are_quiet_whichever_entered() -> None:
    words = np.array([0xFFC12345] + [0] * 31, dtype=np.uint32)
    accumulate.f32v4acc(0x7FE54321, 0x7FE54321, 0, 0, words.view(np.float32))
    assert words[0] == words[2] == 0x7FC00000

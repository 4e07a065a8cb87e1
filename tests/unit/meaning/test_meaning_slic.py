"""SLIC as a convolution by four taps, and the FP8 forms of the matrix unit, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.ipu21.isa.meaning import amp, slic
from tilewright.ipu21.isa.meaning.bits import UNKNOWN_OPERAND
from tilewright.ipu21.isa.meaning.products import lane_of

pytestmark = pytest.mark.unit

PIXELS = 9


def words_of(values: NDArray[np.generic]) -> list[int]:
    return [int(word) for word in np.ascontiguousarray(values).view(np.uint32).reshape(-1)]


def tap_unit(tap: int, output: int) -> int:
    """Matrix unit of a tap (0 enters first) and an output channel 0..3, from the documented weight order."""
    return 6 - 2 * tap + output % 2 + 8 * (output // 2)


@pytest.mark.parametrize("entry", [0, 1])
def test_convolution_by_four_taps(entry: int) -> None:
    rng = np.random.default_rng(entry)
    pixels = rng.integers(-8, 9, (PIXELS, 4)).astype(np.float16)
    taps = rng.integers(-8, 9, (4, 4, 4)).astype(np.float16)  # tap, input channel, output channel
    partials = rng.integers(-8, 9, (PIXELS, 4)).astype(np.float16)
    weights, cells = np.zeros(256, np.float32), np.zeros(32, dtype=np.float32)
    for tap in range(4):
        for output in range(4):
            for inner in range(4):
                place = lane_of(tap_unit(tap, output))
                weights[64 * entry + 16 * inner + place] = taps[tap, inner, output]
    out = []
    for x, p in zip(pixels, partials, strict=True):
        result = slic.f16v4hihov4slic(*words_of(x), *words_of(p), entry, cells, weights, 0, 0, 0, 0, 0)
        out.append(np.array(result, dtype=np.uint32).view(np.float16))
    wide = pixels.astype(np.float64)
    for first in range(PIXELS - 4):
        expected = partials[first] + sum(wide[first + tap] @ taps[tap] for tap in range(4))
        np.testing.assert_array_equal(out[first + 4], expected.astype(np.float16))


def test_one_set_forms_agree() -> None:
    rng = np.random.default_rng(2)
    weights = rng.integers(-4, 5, 256).astype(np.float32)
    cells = [np.zeros(32, dtype=np.float32) for _ in range(3)]
    for _ in range(6):
        x = words_of(rng.integers(-4, 5, 4).astype(np.float16))
        p = rng.integers(-4, 5, 2).astype(np.float32)
        single = words_of(p)
        hiho = slic.f16v4hihoslic(*x, words_of(p.astype(np.float16))[0], 0, cells[0], weights, 0, 0, 0)
        siho = slic.f16v4sihoslic(*x, *single, 0, cells[1], weights, 0, 0, 0)
        siso = slic.f16v4sisoslic(*x, *single, 0, cells[2], weights)
        values = np.array(siso, dtype=np.uint32).view(np.float32)
        assert hiho == siho == words_of(values.astype(np.float16))[0]
    assert slic.f16v4hihoslic(0, 0, 0, 2, cells[0], weights, 0, 0, 0) & UNKNOWN_OPERAND


def single(value: float) -> int:
    return words_of(np.array([value], np.float32))[0]


@pytest.mark.parametrize("entry", [0, 1])
@pytest.mark.parametrize("outputs", [2, 4])
def test_convolution_of_singles(entry: int, outputs: int) -> None:
    """Two instructions per pixel; with four outputs the second one carries those of set 1."""
    rng = np.random.default_rng(outputs)
    pixels = rng.integers(-8, 9, (PIXELS, 2)).astype(np.float32)
    taps = rng.integers(-8, 9, (4, 2, outputs)).astype(np.float32)
    partials = rng.integers(-8, 9, (PIXELS, outputs)).astype(np.float32)
    weights, cells = np.zeros(128, np.float32), np.zeros(32, np.float32)
    for tap in range(4):
        for output in range(outputs):
            for inner in range(2):
                weights[8 * tap_unit(tap, output) + 2 * entry + inner] = taps[tap, inner, output]
    function = slic.f32sisoslic if outputs == 2 else slic.f32sisov2slic
    out = np.zeros((PIXELS, 4), np.float32)
    for index, (x, p) in enumerate(zip(pixels, partials, strict=True)):
        for word in range(2):
            pair = words_of(p[2 * word : 2 * word + 2]) if 2 * word < outputs else [0, 0]
            found = function(single(x[word]), *pair, 2 * entry + word, cells, weights)
            out[index, 2 * word : 2 * word + 2] = np.array(found, np.uint32).view(np.float32)
    for first in range(PIXELS - 4):
        expected = partials[first] + sum(pixels[first + tap] @ taps[tap] for tap in range(4))
        np.testing.assert_array_equal(out[first + 4, :outputs], expected)
    assert function(0, 0, 0, 4, cells, weights)[0] & UNKNOWN_OPERAND


FORMATS = [(1, ml_dtypes.float8_e4m3fnuz), (0, ml_dtypes.float8_e5m2fnuz)]


@pytest.mark.parametrize("weight_format", FORMATS)
@pytest.mark.parametrize("input_format", FORMATS)
@pytest.mark.parametrize("scale", [0, -2])
def test_product_of_float8(
    weight_format: tuple[int, type], input_format: tuple[int, type], scale: int
) -> None:
    """One row of 32 inner elements through `f8v8hihov4amp`, 16 outputs in natural order."""
    rng = np.random.default_rng(scale + 9)
    a = rng.integers(-4, 5, 32).astype(input_format[1])
    b = rng.integers(-4, 5, (32, 16)).astype(weight_format[1])
    entries = np.zeros((64, 8), dtype=np.uint8)
    for column in range(16):
        pair, within = divmod(column, 4)
        unit = 2 * pair + within if within < 2 else 8 + 2 * pair + within - 2
        for phase in range(4):
            entries[4 * unit + phase] = b[8 * phase : 8 * phase + 8, column].copy().view(np.uint8)
    weight_words = entries.view(np.uint32).reshape(-1)
    formats = weight_format[0] | input_format[0] << 1
    cells = np.zeros(32, dtype=np.float32)
    out: list[int] = []
    for step in range(8):
        phase = step % 4
        x = words_of(a.view(np.uint8)[8 * phase : 8 * phase + 8]) if step < 4 else [0, 0]
        result = amp.f8v8hihov4amp(*x, 0, 0, phase, cells, weight_words, formats, scale, 0, 0, 0, 0, 0)
        if step >= 4:
            out += result
    found = np.array(out, dtype=np.uint32).view(np.float16)
    expected = a.astype(np.float64) @ b.astype(np.float64) * 2.0**scale
    np.testing.assert_array_equal(found, expected.astype(np.float16))


def test_float8_slic_agrees_with_halves_on_small_integers() -> None:
    rng = np.random.default_rng(4)
    weights, entries = np.zeros(256, np.float32), np.zeros((64, 8), dtype=ml_dtypes.float8_e4m3fnuz)
    values = rng.integers(-4, 5, (16, 4))
    for unit in range(16):
        entries[4 * unit, :4] = values[unit]
        weights[np.arange(4) * 16 + lane_of(unit)] = values[unit]
    raw = entries.view(np.uint32).reshape(-1)
    halves, quarters = np.zeros(32, dtype=np.float32), np.zeros(32, dtype=np.float32)
    for _ in range(7):
        x, p = rng.integers(-4, 5, 4), words_of(rng.integers(-4, 5, 4).astype(np.float16))
        narrow = words_of(np.append(x, [0] * 4).astype(ml_dtypes.float8_e4m3fnuz).view(np.uint8))
        wide = words_of(x.astype(np.float16))
        a = slic.f16v4hihov4slic(*wide, *p, 0, halves, weights, 0, 0, 0, 0, 0)
        b = slic.f8v8hihov4slic(*narrow, *p, 0, quarters, raw, 3, 0, 0, 0, 0, 0, 0)
        assert a == b

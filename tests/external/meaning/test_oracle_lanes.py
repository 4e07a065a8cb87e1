"""Shuffles, sorts, rolls and bitwise instructions on A registers, against lists of bytes and halves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from lane_sweeps import sweep
from numpy.typing import NDArray

pytestmark = pytest.mark.external

COUNT = 2000
RNG = np.random.default_rng(1)
A = RNG.integers(0, 2**32, (COUNT, 2), dtype=np.uint64).astype(np.uint32)
B = RNG.integers(0, 2**32, (COUNT, 2), dtype=np.uint64).astype(np.uint32)
Array = NDArray[np.generic]


def halves(words: NDArray[np.uint32]) -> NDArray[np.uint16]:
    """[n, 2 * words]"""
    return np.ascontiguousarray(words).view(np.uint16).reshape(len(words), -1)


def octets(words: NDArray[np.uint32]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(words).view(np.uint8).reshape(len(words), -1)


def joined(*columns: Array) -> NDArray[np.uint32]:
    return np.ascontiguousarray(np.stack(columns, axis=1)).view(np.uint32)


def from_halves(pick: Callable[[list[Array], list[Array]], list[Array]]) -> Callable[..., NDArray[np.uint32]]:
    return lambda a, b: joined(*pick(list(halves(a).T), list(halves(b).T)))


def from_octets(pick: Callable[[list[Array], list[Array]], list[Array]]) -> Callable[..., NDArray[np.uint32]]:
    return lambda a, b: joined(*pick(list(octets(a).T), list(octets(b).T)))


ONE_WORD: dict[str, Callable[..., NDArray[np.uint32]]] = {
    "sort4x16lo": from_halves(lambda a, b: [a[0], b[0]]),
    "sort4x16hi": from_halves(lambda a, b: [a[1], b[1]]),
    "roll16": from_halves(lambda a, b: [a[1], b[0]]),
    "shuf8x8lo": from_octets(lambda a, b: [a[0], b[0], a[1], b[1]]),
    "shuf8x8hi": from_octets(lambda a, b: [a[2], b[2], a[3], b[3]]),
    "sort8x8lo": from_octets(lambda a, b: [a[0], a[2], b[0], b[2]]),
    "sort8x8hi": from_octets(lambda a, b: [a[1], a[3], b[1], b[3]]),
    "roll8r": from_octets(lambda a, b: [a[1], a[2], a[3], b[0]]),
    "roll8l": from_octets(lambda a, b: [a[3], b[0], b[1], b[2]]),
    "and": lambda a, b: a & b,
    "andc": lambda a, b: a & ~b,
    "or": lambda a, b: a | b,
}

PAIRS: dict[str, Callable[..., NDArray[np.uint32]]] = {
    "sort4x32lo": lambda a, b: np.stack([a[:, 0], b[:, 0]], axis=1),
    "sort4x32hi": lambda a, b: np.stack([a[:, 1], b[:, 1]], axis=1),
    "roll32": lambda a, b: np.stack([a[:, 1], b[:, 0]], axis=1),
    "and64": lambda a, b: a & b,
    "andc64": lambda a, b: a & ~b,
    "or64": lambda a, b: a | b,
}


def forms_of(mnemonic: str) -> set[str]:
    from tilewright.ipu21.isa.forms import forms_named

    return {form.text for form in forms_named(mnemonic) if form.pipeline == "aux"}


@pytest.mark.parametrize("name", ONE_WORD)
def test_words(name: str) -> None:
    if not any("$aSrc1" in text for text in forms_of(name)):
        pytest.skip("main pipeline only")
    a, b = A[:, :1].copy(), B[:, :1].copy()
    np.testing.assert_array_equal(
        sweep(f"{name} {{d}}, {{x}}, {{y}}", a, b), ONE_WORD[name](a, b).reshape(-1, 1)
    )
    for suffix, lane in ((":BL", 0), (":BU", 1)):
        if not any(suffix in text for text in forms_of(name)):
            continue
        repeated = np.repeat(halves(a)[:, lane : lane + 1], 2, axis=1).view(np.uint32)
        np.testing.assert_array_equal(
            sweep(f"{name} {{d}}, {{x}}{suffix}, {{y}}", a, b), ONE_WORD[name](repeated, b).reshape(-1, 1)
        )


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name: str) -> None:
    np.testing.assert_array_equal(sweep(f"{name} {{d}}, {{x}}, {{y}}", A, B, results=2), PAIRS[name](A, B))


def test_complements() -> None:
    np.testing.assert_array_equal(sweep("not {d}, {x}", A[:, :1].copy()), ~A[:, :1])
    np.testing.assert_array_equal(sweep("not64 {d}, {x}", A, results=2), ~A)

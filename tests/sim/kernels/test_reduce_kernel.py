"""The reduction against NumPy, over partial counts, group sizes and strides."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import DATA, call, halves, run, twice
from numpy.typing import NDArray

from tilewright.errors import UnsupportedError
from tilewright.ipu21.kernels import KERNELS, reduce
from tilewright.ipu21.kernels.reduce_source import UNROLLED, is_wide
from tilewright.ipu21.machine.memory import REGION1_BASE

pytestmark = pytest.mark.sim

OUT, REMOTE = DATA, REGION1_BASE
OWN = REGION1_BASE + 0x40000

Halves = NDArray[np.float16]


def case(remote: int, words: int, columns: int, spare: int, seed: int) -> tuple[Halves, Halves]:
    """Own partials with `spare` further words per group, and remote ones without."""
    return halves(seed, columns, (words + spare) * 4, scale=2), halves(seed + 1, remote, columns, words * 4)


def arguments(remote: int, words: int, columns: int, spare: int) -> dict[str, int]:
    return {
        "remote_count": remote,
        "words": words,
        "columns": columns,
        "own_stride": 8 * (words + spare),
        "remote_stride": 8 * words * columns,
    }


def check(
    remote: int,
    words: int,
    columns: int,
    spare: int = 4,
    *,
    out: int = OUT,
    own: int = OWN,
    others_at: int = REMOTE,
) -> None:
    held, others = case(remote, words, columns, spare, seed=remote * 1000 + words * 10 + columns)
    scalars = arguments(remote, words, columns, spare)
    expected = reduce.reference(held[:, : 4 * words], others)
    outcome = run(
        "reduce_f16",
        {"out": out, "own": own, "remote": others_at, **scalars},
        [(own, held), (others_at, others)],
        [(out, expected.nbytes)],
    )
    np.testing.assert_array_equal(outcome.array(out, expected), expected)
    wide = is_wide(own, others_at, words, scalars["own_stride"], scalars["remote_stride"])
    more = outcome.cycles - reduce.cycles(remote, words, columns, wide)
    assert more == 0 if wide or words * columns == 0 else 0 <= more <= 3


@pytest.mark.parametrize("remote", [*range(1, UNROLLED + 4), 26])
@pytest.mark.parametrize(("words", "columns"), [(4, 1), (20, 9), (36, 4)])
@pytest.mark.parametrize("own", [OWN, OWN + 8])
def test_every_number_of_partials(remote: int, words: int, columns: int, own: int) -> None:
    check(remote, words, columns, own=own)


@pytest.mark.parametrize("words", [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 24, 73, 100])
@pytest.mark.parametrize("columns", [0, 1, 2, 3, 5, 7, 13])
@pytest.mark.parametrize("remote", [1, 3, UNROLLED + 1])
def test_awkward_shares(words: int, columns: int, remote: int) -> None:
    check(remote, words, columns)


@pytest.mark.parametrize(
    ("own", "words", "columns", "spare"), [(DATA + 0x10000, 8, 2, 4), (OWN, 3, 2, 5), (OWN, 3, 4, 1)]
)
def test_reasons_to_take_the_plain_way(own: int, words: int, columns: int, spare: int) -> None:
    """Own partial outside interleaved memory; groups of an odd number of words."""
    check(2, words, columns, spare, own=own)


def test_remote_partials_outside_interleaved_memory() -> None:
    check(2, 8, 2, others_at=DATA + 0x10000)
    check(2, 8, 2, others_at=REMOTE + 8)


@pytest.mark.parametrize("name", ["own_stride", "remote_stride"])
def test_strides_that_the_kernel_would_cut_to_whole_words_are_refused(name: str) -> None:
    places, scalars = {"out": OUT, "own": OWN, "remote": REMOTE}, arguments(3, 8, 2, 4)
    contract = KERNELS["reduce_f16"].contract
    contract.registers(**places, **scalars)
    for more in (1, 2, 4):
        with pytest.raises(UnsupportedError, match=name):
            contract.registers(**places, **scalars | {name: scalars[name] + more})


def test_contiguous_own_partial() -> None:
    check(3, 8, 4, spare=0)


@pytest.mark.parametrize("words", [1, 24])
def test_result_over_own_partial(words: int) -> None:
    check(5, words, 1, out=OWN)


def test_large_block() -> None:
    check(2, 4000, 1)
    check(1, 4, 2000)


def test_one_rounding() -> None:
    """Many small addends that vanish one by one in half precision."""
    own, others = np.full((1, 4), 2048, np.float16), np.full((8, 1, 4), 0.5, np.float16)
    scalars = arguments(8, 1, 1, 0)
    outcome = run(
        "reduce_f16",
        {"out": OUT, "own": OWN, "remote": REMOTE, **scalars},
        [(OWN, own), (REMOTE, others)],
        [(OUT, 8)],
    )
    assert np.all(outcome.array(OUT, own) == 2052)


def test_a_call_does_not_depend_on_the_one_before() -> None:
    calls, inputs, outputs, expected = [], [], [], []
    for number, (remote, words, columns) in enumerate([(5, 20, 3), (1, 4, 1), (18, 8, 2)]):
        own, others = case(remote, words, columns, 4, seed=number)
        shift = 0x2000 * number
        calls.append(
            {
                "out": OUT + shift,
                "own": OWN + shift,
                "remote": REMOTE + shift,
                **arguments(remote, words, columns, 4),
            }
        )
        inputs += [(OWN + shift, own), (REMOTE + shift, others)]
        outputs.append((OUT + shift, words * columns * 8))
        expected.append(reduce.reference(own[:, : 4 * words], others))
    outcome = call(twice("reduce_f16", calls), "driver", {}, inputs, [*outputs, (0x58600, 0xE0)])
    for (begin, _), result in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(outcome.array(begin, result), result)


def test_formula_takes_arrays() -> None:
    remote, words, columns = (
        np.array([1, 2, 17, 30, 3]),
        np.array([4, 20, 8, 12, 0]),
        np.array([1, 9, 3, 2, 5]),
    )
    each = [
        int(reduce.cycles(int(r), int(w), int(c))) for r, w, c in zip(remote, words, columns, strict=True)
    ]
    assert reduce.cycles(remote, words, columns).tolist() == each

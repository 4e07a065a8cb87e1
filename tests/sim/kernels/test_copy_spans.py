"""Workers that copy listed spans: every word arrives, nothing else changes, and the cycles are exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_runs import DATA, call

from tilewright.arithmetic import align_up
from tilewright.ipu21.kernels import object_of
from tilewright.ipu21.kernels.copy_spans import (
    SYMBOL,
    Span,
    cycles,
    expected,
    frame,
    frame_words,
    is_paced,
    shared_out,
)
from tilewright.ipu21.kernels.supervisor import launch_cycle
from tilewright.ipu21.machine.memory import IMAGE_BASE
from tilewright.ipu21.machine.timing import SUPERVISOR_BRANCH
from tilewright.ipu21.toolchain import assemble, link

pytestmark = pytest.mark.sim

SOURCE, TARGET = 0x84000, 0x98000


def spans_of(sizes: list[int]) -> list[Span]:
    """Spans with gaps between them, in another order where they go to."""
    spans, source, target = [], SOURCE, TARGET + 0x8000
    for size in sizes:
        target -= 8 * size + 16
        spans.append((size, source, target))
        source += 8 * size + 24
    return spans


def within_an_element(sizes: list[int], base: int) -> list[Span]:
    """Spans between both halves of one element, every other one 8 bytes further where it goes to."""
    spans, source, target = [], base, base + 0x2000
    for index, size in enumerate(sizes):
        target = align_up(target, 16) + 8 * (index % 2)
        spans.append((size, source, target))
        source, target = align_up(source + 8 * size, 16), target + 8 * size
    return spans


SIZES = [[], [1], [5], [6], [24, 24, 24], [28, 28], [3, 50, 1, 1, 7, 9, 2], [700]]


@pytest.mark.parametrize("sizes", SIZES)
def test_copies_between_elements(sizes: list[int]) -> None:
    spans = spans_of(sizes)
    assert all(map(is_paced, spans))
    check_copies(spans)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("base", [0x64000, 0xA0000])
def test_copies_within_an_element(sizes: list[int], base: int) -> None:
    spans = within_an_element(sizes, base)
    assert [is_paced(span) for span in spans] == [
        base > 0x80000 and index % 2 == 0 for index in range(len(sizes))
    ]
    check_copies(spans)
    further = [(size, source + 0x10000, target) for size, source, target in spans_of([4, 90])]
    check_copies([*spans[:1], *further, *spans[1:]])


@pytest.mark.parametrize(
    ("words", "source", "target", "paced"),
    [
        (1, 0x64000, 0x65000, False),
        (1, 0x64000, 0x68000, True),
        (2048, 0x60000, 0x64000, True),
        (2049, 0x60000, 0x64000, False),
        (8, 0xA0000, 0xA1000, True),
        (8, 0xA0000, 0xA1008, False),
        (8, 0xA1008, 0xA0008, True),
        (8, 0x9F008, 0xA0000, True),
        (8, 0x7E000, 0x80000, True),
        (9, 0x7FFC0, 0x80040, False),
        (9, 0x80040, 0x7FFC0, False),
    ],
)
def test_words_are_paced_between_different_elements(
    words: int, source: int, target: int, paced: bool
) -> None:
    assert is_paced((words, source, target)) == paced


def check_copies(spans: list[Span]) -> None:
    workers = shared_out(spans)
    stride = frame_words(max(map(len, workers)))
    frames = np.array([word for own in workers for word in frame(own, stride)], dtype=np.uint32)
    start = ["setzi $m0, copy_spans", f"setzi $m1, {DATA}", f"runall $m0, $m1, {stride}"]
    text = "\n".join([".globl driver", "driver:", *start, "sync 2", "br $m10"])
    driver = assemble(f'.section .text.driver, "ax"\n{text}\n', filename="driver.S")
    image = link([object_of(SYMBOL), driver], intervals=((IMAGE_BASE, 0x50000),), roots=["driver"])
    random = np.random.default_rng(len(spans))
    arrays = [random.integers(0, 1 << 63, size, dtype=np.uint64) for size, _, _ in spans]
    inputs = [(DATA, frames), *((source, data) for (_, source, _), data in zip(spans, arrays, strict=True))]
    outcome = call(image, "driver", {}, inputs, [(target, 8 * size) for size, _, target in spans])
    for (_, _, target), data in zip(spans, arrays, strict=True):
        assert np.array_equal(outcome.array(target, data), data)
    assert outcome.cycles == launch_cycle(start) + cycles(workers) + SUPERVISOR_BRANCH


@given(sizes=st.lists(st.integers(1, 90), min_size=1, max_size=12))
@settings(max_examples=60)
def test_workers_share_all_words_evenly(sizes: list[int]) -> None:
    workers = shared_out(spans_of(sizes))
    assert len(workers) == 6
    moved = {}
    for words, source, target in (span for own in workers for span in own):
        for word in range(words):
            assert source + 8 * word not in moved
            moved[source + 8 * word] = target + 8 * word
    wanted = {s + 8 * word: t + 8 * word for n, s, t in spans_of(sizes) for word in range(n)}
    assert moved == wanted
    assert max(sum(span[0] for span in own) for own in workers) == -(-sum(sizes) // 6)


def test_a_part_of_one_span_is_one_span() -> None:
    assert expected(1, 13) == expected(1, 18) < expected(1, 19)


@pytest.mark.parametrize(("count", "words"), [(1, 72), (2, 28), (3, 24), (4, 92), (6, 4)])
def test_what_plans_expect_is_near(count: int, words: int) -> None:
    exact = cycles(shared_out(spans_of([words] * count)))
    assert abs(expected(count, words) - exact) <= 0.15 * exact

"""Workers that copy listed spans: every word arrives, nothing else changes, and the cycles are exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_runs import DATA, call

from tilewright.ipu21.kernels import object_of
from tilewright.ipu21.kernels.copy_spans import SYMBOL, Span, cycles, expected, frame, frame_words, shared_out
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


@pytest.mark.parametrize("sizes", [[], [1], [5], [6], [24, 24, 24], [28, 28], [3, 50, 1, 1, 7, 9, 2], [700]])
def test_copies_and_cycles(sizes: list[int]) -> None:
    spans = spans_of(sizes)
    workers = shared_out(spans)
    stride = frame_words(max(map(len, workers)))
    frames = np.array([word for own in workers for word in frame(own, stride)], dtype=np.uint32)
    start = ["setzi $m0, copy_spans", f"setzi $m1, {DATA}", f"runall $m0, $m1, {stride}"]
    text = "\n".join([".globl driver", "driver:", *start, "sync 2", "br $m10"])
    driver = assemble(f'.section .text.driver, "ax"\n{text}\n', filename="driver.S")
    image = link([object_of(SYMBOL), driver], intervals=((IMAGE_BASE, 0x50000),), roots=["driver"])
    random = np.random.default_rng(len(sizes))
    arrays = [random.integers(0, 1 << 63, size, dtype=np.uint64) for size in sizes]
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


@pytest.mark.parametrize(("count", "words"), [(1, 72), (2, 28), (3, 24), (4, 92), (6, 4)])
def test_what_plans_expect_is_near(count: int, words: int) -> None:
    exact = cycles(shared_out(spans_of([words] * count)))
    assert abs(expected(count, words) - exact) <= 0.15 * exact

"""A heap of numbers in an array (compiled)."""

from __future__ import annotations

from ...native.loops import compiled
from .tables import Ints


def _push_python(heap: Ints, count: int, value: int) -> int:
    """Add a number to a heap, whose least comes first; how many there are now."""
    i = count
    while i > 0 and heap[(i - 1) >> 1] > value:
        heap[i] = heap[(i - 1) >> 1]
        i = (i - 1) >> 1
    heap[i] = value
    return count + 1


push = compiled(_push_python, "i", "vii")


def _pop_python(heap: Ints, count: int) -> int:
    """Take the least of `count` numbers from a heap."""
    least, value = heap[0], heap[count - 1]
    i, child = 0, 1
    while child < count - 1:
        if child + 1 < count - 1 and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[i] = heap[child]
        i, child = child, 2 * child + 1
    heap[i] = value
    return int(least)


pop = compiled(_pop_python, "i", "vi")

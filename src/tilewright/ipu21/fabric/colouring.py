"""Edge colouring of the sender-receiver graph (compiled): messages of one colour share no endpoint.

A bipartite multigraph can be coloured with as many colours as its largest degree (König); so messages of
equal length, taken colour by colour, keep the busiest endpoints busy all the time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...native.loops import compiled

Ints = NDArray[np.int64]
Edges = NDArray[np.int32]


def _colour_python(source: Ints, tile: Ints, order: Ints, colours: Ints, used: Edges) -> None:
    # used[2 * vertex + side, colour] = the edge of that colour, or -1; side 0 sends, 1 receives
    for i in order:
        s, d = 2 * source[i], 2 * tile[i] + 1
        a = 0
        while used[s, a] >= 0:
            a += 1
        b = 0
        while used[d, b] >= 0:
            b += 1
        if used[d, a] >= 0:
            if used[s, b] < 0:
                a = b
            else:
                # Swap colours a and b along the path that starts at the receiver; it cannot reach the sender.
                vertex, colour, edge = d, a, used[d, a]
                used[d, a] = -1
                while edge >= 0:
                    other = b if colour == a else a
                    far = 2 * source[edge] if vertex & 1 else 2 * tile[edge] + 1
                    following = used[far, other]
                    used[vertex, other] = edge
                    if used[far, colour] == edge:
                        used[far, colour] = -1
                    used[far, other] = edge
                    colours[edge] = other
                    vertex, colour, edge = far, other, following
        used[s, a] = i
        used[d, a] = i
        colours[i] = a


_colour = compiled(_colour_python, "-", "vvvvs")


def colour(source: Ints, tile: Ints, order: Ints, degree: int, colours: Ints) -> None:
    """Fill `colours` (0..degree-1) for messages source[i] -> tile[i], coloured in `order`; `degree` is the
    largest number of messages at one sender or one receiver."""
    vertices = 1 + max(int(source.max(initial=0)), int(tile.max(initial=0)))
    _colour(source, tile, order, colours, np.full((2 * vertices, degree), -1, np.int32))

"""Edge colouring of the sender-receiver graph (compiled): messages of one colour share no endpoint.

A bipartite multigraph can be coloured with as many colours as its largest degree (König); so messages of
equal length, taken colour by colour, keep the busiest endpoints busy all the time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...compiled import compiled

Ints = NDArray[np.int64]


def _colour_python(source: Ints, tile: Ints, order: Ints, degree: int, colours: Ints) -> None:
    vertices = 0
    for i in order:
        vertices = max(vertices, max(source[i], tile[i]) + 1)
    # used[side, vertex, colour] = the edge of that colour, or -1
    used = np.full((2, vertices, degree), -1, np.int32)
    for i in order:
        s, d = source[i], tile[i]
        a = 0
        while used[0, s, a] >= 0:
            a += 1
        b = 0
        while used[1, d, b] >= 0:
            b += 1
        if used[1, d, a] >= 0:
            if used[0, s, b] < 0:
                a = b
            else:
                # Swap colours a and b along the path that starts at the receiver; it cannot reach the sender.
                side, vertex, colour, edge = 1, d, a, used[1, d, a]
                used[1, d, a] = -1
                while edge >= 0:
                    other = b if colour == a else a
                    far = source[edge] if side == 1 else tile[edge]
                    following = used[1 - side, far, other]
                    used[side, vertex, other] = edge
                    if used[1 - side, far, colour] == edge:
                        used[1 - side, far, colour] = -1
                    used[1 - side, far, other] = edge
                    colours[edge] = other
                    side, vertex, colour, edge = 1 - side, far, other, following
        used[0, s, a] = i
        used[1, d, a] = i
        colours[i] = a


colour = compiled(_colour_python, "-", "vvviv")
"""Fill `colours` (0..degree-1) for messages source[i] -> tile[i], coloured in `order`; `degree` is the
largest number of messages at one sender or one receiver."""

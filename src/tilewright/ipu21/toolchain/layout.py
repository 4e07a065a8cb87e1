"""Sizes that a source must be read once to know, so that it can be read again with them."""

from __future__ import annotations

from dataclasses import dataclass, field

MAXIMUM_READS = 20


@dataclass(slots=True)
class Layout:
    """What a reading assumes, and after it what was found.

    `starts` says where the numbered subsections of a section begin, `lengths` how many bytes the LEB128
    numbers take whose value is known only at the end, in the order of the source. A number never shrinks
    again, so that readings come to an end.
    """

    starts: dict[str, dict[int, int]] = field(default_factory=dict)
    lengths: list[int] = field(default_factory=list)

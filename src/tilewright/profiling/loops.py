"""How often a run goes through each profile step."""

from __future__ import annotations

from math import prod

from tilewright.package.records import Package


def repetitions(package: Package) -> list[int]:
    """Instances of each profile step in one run; 1 where the package does not say."""
    program = package.program
    loops = program.loops if program is not None else []
    return [
        prod(loop.count for loop in loops if loop.first <= step <= loop.last)
        for step in range(len(package.profile.steps))
    ]

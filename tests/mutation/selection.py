"""Which test files may notice a mutant, from what they execute when nothing is wrong."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mutation.mutant import SOURCE, Mutant
from mutation.subjects import TESTS
from mutation.trials import HARMLESS, Trials
from tilewright.errors import UsageError
from tilewright.files import write_whole
from tilewright.user_cache import cache_area


@dataclass(frozen=True)
class Watched:
    """Seconds that a test file takes while it is watched, and the lines it executes in each source file."""

    seconds: float
    lines: dict[str, list[int]]


Touched = dict[str, Watched]


def selected(mutant: Mutant, touched: Touched, likely: str | None = None) -> list[str]:
    """Test files to run against a mutant, in this order: those that execute its line, something else of its
    function, something else of its file; within each the quickest first.

    What lies in a function that some test executes only those can notice that do. What lies elsewhere may
    have been used while modules were imported. Where no test executes anything of the file, all are run.

    Args:
        likely: what to run before all others.
    """

    def rank(name: str) -> int:
        lines = touched[name].lines.get(mutant.path, [])
        first, last = mutant.around
        if mutant.line in lines:
            return 0
        return 1 if any(first <= line <= last for line in lines) else 2 if lines else 3

    ranks = {name: rank(name) for name in touched}
    ordered = sorted(touched, key=lambda name: (ranks[name], touched[name].seconds))
    first = [likely] if likely else []
    for furthest in (1, 2) if mutant.around != (0, 0) else (2,):
        near = [name for name in ordered if ranks[name] <= furthest]
        if near:
            return first + near
    return first + ordered


def watched(tests: Sequence[str], trials: Trials) -> Touched:
    """What each test file executes; kept until it or the source changes.

    Raises UsageError if a test fails without any mutant.
    """
    kept = cache_area("mutation") / "touched.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    result = {}
    for name in tests:
        key = _digest(name)
        if known.get(name, {}).get("key") != key:
            outcome = trials.run(None, [name], lines=True)
            if outcome.verdict != HARMLESS:
                raise UsageError(f"tests/{name} fails without any mutant: {outcome.by}")
            print(f"tests/{name} passes in {outcome.seconds:.1f} s", flush=True)
            known[name] = {"key": key, "seconds": outcome.seconds, "lines": outcome.lines}
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_whole(kept, json.dumps(known).encode())
        result[name] = Watched(known[name]["seconds"], known[name]["lines"])
    return result


def _digest(test: str) -> str:
    """Of the source and what stands beside a test file."""
    digest = hashlib.sha256()
    for path in [*sorted(SOURCE.rglob("*.py")), *sorted((TESTS / test).parent.glob("*.py"))]:
        if path.name == Path(test).name or not path.name.startswith("test_"):
            digest.update(f"{path.relative_to(TESTS.parent)} ".encode() + path.read_bytes())
    return digest.hexdigest()

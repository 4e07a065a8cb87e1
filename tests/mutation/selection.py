"""Which tests may notice a mutant, from what they execute when nothing is wrong."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from mutation.mutant import SOURCE, Mutant
from mutation.subjects import TESTS, Subject
from mutation.trials import HARMLESS, Trials
from tilewright.errors import UsageError
from tilewright.files import write_whole
from tilewright.user_cache import cache_area


@dataclass(frozen=True)
class Watched:
    """Seconds of processor time that a test takes while it is watched, and the lines it executes in each
    source file."""

    seconds: float
    lines: dict[str, list[int]]


Touched = dict[str, Watched]
"""By test: `FILE::NAME` below `tests`."""


@dataclass(frozen=True)
class Selection:
    """Tests to run against a mutant, in this order; how long they take together; how many more there are."""

    tests: list[str]
    seconds: float = 0.0
    left: int = 0


def selected(mutant: Mutant, touched: Touched, *, likely: str | None = None, seconds: float) -> Selection:
    """Tests that execute a mutant's line; beside one that does; something else of its function; then those
    whose file names the module, those that execute something else of it, all others. Within each the quickest
    first, as many as together take `seconds`, and one at least.

    What lies in a function that some test executes only those can notice that do, or that stand beside one:
    they may use what it has made. What lies elsewhere may have been used while modules were imported, and
    what is compiled is executed unseen.

    Args:
        likely: what to run before all others.
    """
    first, last = mutant.around
    near = {name: watched.lines.get(mutant.path, []) for name, watched in touched.items()}
    beside = {_file(name) for name, lines in near.items() if mutant.line in lines}
    naming = {file for file in map(_file, touched) if _names(file, mutant.module)}

    def rank(name: str) -> int:
        lines = near[name]
        if mutant.line in lines:
            return 0
        if _file(name) in beside:
            return 1
        if any(first <= line <= last for line in lines):
            return 2
        return 3 if _file(name) in naming else 4 if lines else 5

    ranks = {name: rank(name) for name in touched}
    chosen = sorted(touched, key=lambda name: (ranks[name], touched[name].seconds))
    if ranks and ranks[chosen[0]] <= 2:
        chosen = [name for name in chosen if ranks[name] <= 2]
    total, tests = 0.0, [likely] if likely else []
    for count, name in enumerate(chosen):
        total += touched[name].seconds
        if count and total > seconds:
            return Selection(tests, total - touched[name].seconds, len(chosen) - count)
        tests.append(name)
    return Selection(tests, total)


def _file(test: str) -> str:
    return test.partition("::")[0]


@cache
def _names(file: str, module: str) -> bool:
    """True if a test file has the last part of a module's name."""
    path = TESTS / file
    return path.exists() and module.rpartition(".")[2] in path.read_text()


def watched(subject: Subject, trials: Trials) -> Touched:
    """What each test of a subject executes of its sources; kept until they or the test's file change.

    Raises UsageError if a test fails without any mutant.
    """
    area = cache_area("mutation")
    result = {}
    for file in subject.test_files():
        key = _digest(file, subject.paths())
        kept = area / f"touched/{key}.json"
        if not kept.exists():
            outcome = trials.run(None, [file], watch=subject.paths())
            if outcome.verdict != HARMLESS:
                raise UsageError(f"tests/{file} fails without any mutant: {outcome.by}")
            print(f"tests/{file} passes in {outcome.seconds:.1f} s", flush=True)
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_whole(kept, json.dumps(outcome.touched).encode())
        for name, (seconds, lines) in json.loads(kept.read_text()).items():
            result[name] = Watched(seconds, lines)
    return result


def _digest(test: str, sources: Sequence[str]) -> str:
    """Of sources, a test file and what stands beside it that is no test."""
    digest = hashlib.sha256()
    beside = sorted((TESTS / test).parent.glob("*.py"))
    for path in [*(SOURCE / source for source in sources), *beside]:
        if path.name == TESTS.joinpath(test).name or not path.name.startswith("test_"):
            digest.update(f"{path.relative_to(TESTS.parent)} ".encode() + path.read_bytes())
    return digest.hexdigest()[:32]

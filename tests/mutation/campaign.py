"""Takes away one guard after the other and sees whether a test notices.

    python tests/mutation/campaign.py                       every guard
    python tests/mutation/campaign.py --list                what would be taken away
    python tests/mutation/campaign.py --only kernels/gemm   guards whose name contains this

Guards are found in the source (`subjects.py` says where; `conditions.py`, `contracts.py` and
`instructions.py` how): conditions of refusals, terms of checks, limits, alignment, filters, what kernel
contracts ask for, and guarding instructions in assembly text. Each is taken away in a copy that only one
forked process sees; the tests of its subject that execute the line run there, the quickest first, up to the
first failure. A mutant that no test notices has survived. `equivalent.toml` names mutants that change nothing
there is to see, and why. Sources must not be edited meanwhile.

Exit status: 0 if none survived, 1 if one did, 2 if the request is at fault.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "src"))

from mutation.mutant import Mutant
from mutation.selection import Selection, selected, watched
from mutation.subjects import SUBJECTS, Subject, equivalents
from mutation.trials import HARMLESS, Trials, load_everything
from tilewright.errors import TilewrightError, UsageError

SECONDS = 600.0
"""Of one trial, whatever its tests take."""
TEST_SECONDS = 30.0
"""Of processor time that the tests of one trial take when nothing is wrong; what only slower tests notice
deserves a quick one."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except TilewrightError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="campaign.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)}; default all"
    )
    parser.add_argument(
        "--only", metavar="TEXT", action="append", help="only mutants whose name contains TEXT"
    )
    parser.add_argument(
        "--tests",
        metavar="FILE",
        action="append",
        help="run only this file below tests; none is watched first",
    )
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("--equivalent", action="store_true", help="also try those that equivalent.toml names")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="limit of one trial (default %(default)s)"
    )
    parser.add_argument(
        "--test-seconds",
        type=float,
        default=TEST_SECONDS,
        help="tests of one trial may take so long together when nothing is wrong (default %(default)s)",
    )
    return parser


def _run(options: argparse.Namespace) -> int:
    unknown = [name for name in options.subjects if name not in SUBJECTS]
    if unknown:
        raise UsageError(f"there is no subject {unknown[0]!r}", hint=f"there are {', '.join(SUBJECTS)}")
    chosen = {name: SUBJECTS[name] for name in options.subjects or SUBJECTS}
    reasons = equivalents()
    mutants = {name: _wanted(subject.mutants(), options.only) for name, subject in chosen.items()}
    if not any(mutants.values()):
        raise UsageError(f"no mutant's name contains {' or '.join(options.only)}", hint="see --list")
    _check_reasons(reasons)
    if options.list:
        for each in mutants.values():
            for mutant in each:
                mark = "equivalent  " if mutant.name in reasons else ""
                print(f"{mark}{mutant.name}  (line {mutant.line})")
        return 0
    trials = Trials(load_everything(), options.seconds)
    survivors: list[Mutant] = []
    totals: list[str] = []
    for name, subject in chosen.items():
        if mutants[name]:
            held = {} if options.equivalent else reasons
            left, total = _subject(name, subject, mutants[name], held, trials, options)
            survivors += left
            totals.append(total)
    print("\n".join(totals))
    for mutant in survivors:
        print(f"survived: {mutant.name}")
    return 1 if survivors else 0


def _wanted(mutants: Sequence[Mutant], only: Sequence[str] | None) -> list[Mutant]:
    return [mutant for mutant in mutants if not only or any(text in mutant.name for text in only)]


def _check_reasons(reasons: dict[str, str]) -> None:
    """Refuse reasons for what no longer is there."""
    names = {mutant.name for subject in SUBJECTS.values() for mutant in subject.mutants()}
    for name in reasons:
        if name not in names:
            raise UsageError(f"no mutant is called {name!r}", where="equivalent.toml", hint="take it out")


def _subject(
    name: str,
    subject: Subject,
    mutants: Sequence[Mutant],
    reasons: dict[str, str],
    trials: Trials,
    options: argparse.Namespace,
) -> tuple[list[Mutant], str]:
    """(mutants that survived, one line of counts)."""
    touched = watched(subject, trials) if options.tests is None else {}
    killed, survivors, sound = 0, [], set[tuple[str, str]]()
    started = time.monotonic()
    tried = [mutant for mutant in mutants if mutant.name not in reasons]
    for count, mutant in enumerate(tried, 1):
        chosen = Selection(options.tests or [], math.inf)
        if options.tests is None:
            likely = subject.likely_for(mutant)
            chosen = selected(mutant, touched, likely=likely, seconds=options.test_seconds)
        outcome = trials.run(
            mutant, chosen.tests, work=None if math.isinf(chosen.seconds) else chosen.seconds
        )
        if outcome.verdict == "broken":
            raise UsageError(f"the tests could not be run: {outcome.by}", where=mutant.name)
        dead = outcome.verdict != HARMLESS
        killed += dead
        if not dead:
            survivors.append(mutant)
        elif "::" in outcome.by and (outcome.by, mutant.path) not in sound:
            _passes(outcome.by, mutant, trials)
            sound.add((outcome.by, mutant.path))
        left = f" ({chosen.left} more tests execute it)" if chosen.left else ""
        verdict = f"{outcome.verdict} ({outcome.by})" if dead else f"SURVIVED{left}"
        print(f"{name} {count}/{len(tried)} {outcome.seconds:5.1f} s  {mutant.name}: {verdict}", flush=True)
    equivalent = len(mutants) - len(tried)
    minutes = (time.monotonic() - started) / 60
    return survivors, (
        f"{name}: {len(mutants)} mutants, {killed} killed, {equivalent} equivalent, "
        f"{len(survivors)} survived, {minutes:.0f} minutes"
    )


def _passes(test: str, mutant: Mutant, trials: Trials) -> None:
    """Refuse a test that fails anyway, if only where the module was loaded anew, as it is."""
    name = test.removeprefix("tests/").removesuffix(" (collection)")
    if trials.run(mutant.undone(), [name]).verdict != HARMLESS:
        raise UsageError(f"it fails without any mutant of {mutant.path}", where=test)


if __name__ == "__main__":
    sys.exit(main())

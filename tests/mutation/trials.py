"""Runs test files against one mutant, each time in a process of its own that was forked from this one.

What is common to all is loaded once, here: the test framework, the simulator's native code, everything that
does not import the mutated module.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mutation.mutant import SOURCE, Mutant
from mutation.overlay import Dependents, replace_module
from mutation.running import Watch, run_tests
from mutation.subjects import TESTS
from mutation.touched import Tracer

MEMORY_BYTES = 8 << 30
"""A trial may map so much more than this process."""
TRIES, SPARE_SECONDS = 3, 20
"""A trial is ended when it has taken so many times the processor time of its tests, and so many seconds."""
CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE)
"""How compiled code ends that reads or writes where nothing is."""
HARMLESS = "harmless"
"""What a trial says when no test failed."""


@dataclass(frozen=True)
class Outcome:
    """How a trial ended.

    Attributes:
        verdict: `HARMLESS`, "killed", "killed by time", "killed by a crash", "killed at import", or "broken"
            if the tests could not be run.
        by: the first test that failed, or the end of what the trial printed.
        seconds: it took.
        touched: test -> (seconds of processor time, file below `SOURCE` -> lines executed by functions), if
            that was asked for.
    """

    verdict: str
    by: str = ""
    seconds: float = 0.0
    touched: dict[str, tuple[float, dict[str, list[int]]]] | None = None


def load_everything() -> Dependents:
    """Import all of the package and the test framework, and load the simulator's native code."""
    import importlib
    import pkgutil

    import hypothesis  # noqa: F401

    import tilewright
    from tilewright.ipu21.machine.memory import IMAGE_BASE
    from tilewright.ipu21.simulator.single import run_function
    from tilewright.ipu21.toolchain import assemble, link

    for found in pkgutil.walk_packages(tilewright.__path__, "tilewright."):
        if not found.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(found.name)
    text = '.section .text.f, "ax"\n.balign 8\n.globl f\n.type f, @function\nf:\n  br $m10\n'
    image = link([assemble(text, filename="f.S")], intervals=((IMAGE_BASE, 0x50000),), roots=["f"])
    run_function(image, "f", {}, {})
    return Dependents("tilewright")


class Trials:
    """Trials of mutants.

    Args:
        dependents: see `load_everything`.
        seconds: limit of one trial.
    """

    def __init__(self, dependents: Dependents, seconds: float) -> None:
        self._dependents = dependents
        self._seconds = seconds

    def run(
        self,
        mutant: Mutant | None,
        tests: Sequence[str],
        *,
        work: float | None = None,
        watch: Sequence[str] | None = None,
    ) -> Outcome:
        """Run tests (below `tests`) in the given order up to the first failure.

        Args:
            mutant: None for the source as it is.
            tests: each a file, which ` -k EXPRESSION` may follow, or `FILE::NAME`.
            work: seconds of processor time that the tests take; a trial that takes several times as many is
                ended.
            watch: files below `SOURCE` for `Outcome.touched`.
        """
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="mutation-") as name:
            folder = Path(name)
            process = os.fork()
            if not process:
                self._child(mutant, tests, folder, work, watch)
            status, late = _wait(process, self._seconds)
            seconds = time.monotonic() - started
            code = os.waitstatus_to_exitcode(status)
            if late or code == -signal.SIGXCPU:
                return Outcome("killed by time", "it does not end", seconds)
            printed = (folder / "printed").read_text(errors="replace")
            said = json.loads((folder / "said").read_text()) if (folder / "said").exists() else {}
        if "imported" not in said:
            verdict = "killed at import" if mutant else "broken"
            return Outcome(verdict, printed.strip().splitlines()[-1] if printed.strip() else "", seconds)
        if -code in CRASHES:
            return Outcome("killed by a crash", signal.Signals(-code).name, seconds)
        if code == 0:
            return Outcome(HARMLESS, "", seconds, said["touched"])
        # A file that cannot be collected has none of the tests that were asked for: a request at fault, 4.
        if code in (1, 2) or (code == 4 and said["failed"]):
            return Outcome("killed", said["failed"] or "collection", seconds)
        return Outcome("broken", f"exit {code}: {printed[-2000:]}", seconds)

    def _child(
        self,
        mutant: Mutant | None,
        tests: Sequence[str],
        folder: Path,
        work: float | None,
        watch: Sequence[str] | None,
    ) -> None:
        code = 70
        try:
            os.setsid()
            printed = os.open(folder / "printed", os.O_CREAT | os.O_WRONLY)
            os.dup2(printed, 1)
            os.dup2(printed, 2)
            mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY_BYTES,) * 2)
            _separate_caches(folder)
            os.chdir(TESTS.parent)
            _forget_tests()
            if mutant:
                dependents = self._dependents.of(mutant.module)
                replace_module(mutant.module, mutant.source(), folder, dependents)
            if work is not None:
                most = math.ceil(time.process_time() + TRIES * work + SPARE_SECONDS)
                resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
            code = run_tests(tests, folder, Watch(Tracer(SOURCE, watch) if watch else None))
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def _wait(process: int, seconds: float) -> tuple[int, bool]:
    """(status, whether it had to be ended)."""
    until = time.monotonic() + seconds
    pause = 0.01
    while time.monotonic() < until:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return status, False
        time.sleep(pause)
        pause = min(pause * 1.5, 0.2)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    return status, True


def _forget_tests() -> None:
    """Test modules that are loaded have the source as it is."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if file.startswith(f"{TESTS}{os.sep}") and not file.startswith(str(TESTS / "mutation")):
            del sys.modules[name]


def _separate_caches(folder: Path) -> None:
    """Give the trial a cache of its own: a compiled package is kept by the digest of a source that is not the
    one that made it. The engine's native code, which no mutant changes, is shared, and so are translations of
    kernels, which are kept by the machine code they are of.
    """
    from tilewright.user_cache import cache_area

    (folder / "cache/tilewright").mkdir(parents=True)
    for area, kept in (("engine", cache_area("engine")), ("translations", cache_area("mutation") / "code")):
        kept.mkdir(parents=True, exist_ok=True)
        (folder / "cache/tilewright" / area).symlink_to(kept)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")

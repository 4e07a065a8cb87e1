"""Runs tests in this process, and sees which one fails first, what each takes and what it executes."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mutation.touched import Tracer

FIRST_BATCH = 6


class Watch:
    """Pytest plugin: the first test that fails; what each takes and executes."""

    def __init__(self, tracer: Tracer | None) -> None:
        self.tracer = tracer
        self.failed = ""
        self.seconds: dict[str, float] = {}
        self.fixtures: dict[str, list[str]] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = f"{report.nodeid} (collection)"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        if self.tracer is None:
            return (yield)
        started = _processor_seconds()
        with self.tracer.part(item.nodeid):
            result = yield
        self.seconds[item.nodeid] = _processor_seconds() - started
        self.fixtures[item.nodeid] = list(item.fixturenames)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        if self.tracer is None or fixturedef.scope == "function":
            return (yield)
        # What several tests share is made in one of them, and all of them execute it.
        with self.tracer.part(fixturedef.argname):
            return (yield)

    def touched(self) -> dict[str, tuple[float, dict[str, list[int]]]]:
        result = {}
        for name, seconds in self.seconds.items():
            lines: dict[str, set[int]] = {}
            for part in (name, *self.fixtures[name]):
                for file, some in self.tracer.lines(part).items() if self.tracer else ():
                    lines.setdefault(file, set()).update(some)
            sorted_lines = {file: sorted(lines[file]) for file in sorted(lines)}
            result[name.removeprefix("tests/")] = (seconds, sorted_lines)
        return result


def _processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _batches(tests: Sequence[str]) -> Iterator[list[str]]:
    """What one call of the test framework runs: a file, or some tests, the first few by themselves, since
    what fails early spares the others even their collection."""
    most, batch = FIRST_BATCH, list[str]()
    for test in tests:
        if batch and ("::" not in test or "::" not in batch[-1] or len(batch) == most):
            yield batch
            most, batch = 4 * most, []
        batch.append(test)
    if batch:
        yield batch


def run_tests(tests: Sequence[str], folder: Path, watch: Watch) -> int:
    """Run tests, see `trials.Trials.run`, up to the first failure, and write to `folder/said` what was seen.
    Returns the exit status of the test framework.
    """
    said: dict[str, Any] = {"imported": True, "failed": "", "touched": None}
    (folder / "said").write_text(json.dumps(said))
    options = ["-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist"]
    code = 0
    with watch.tracer.running() if watch.tracer else contextlib.nullcontext():
        for batch in _batches(tests):
            # Names of tests may hold anything; an expression only follows a file.
            file, _, some = ("", "", "") if "::" in batch[0] else batch[0].partition(" -k ")
            names = [file] if file else batch
            chosen = [*(f"tests/{name}" for name in names), *(("-k", some) if some else ())]
            code = int(pytest.main([*options, *chosen], plugins=[watch]))
            if code == pytest.ExitCode.NO_TESTS_COLLECTED and some:
                code = 0
            if code:
                break
    said |= {"failed": watch.failed, "touched": watch.touched() if watch.tracer else None}
    (folder / "said").write_text(json.dumps(said))
    return code

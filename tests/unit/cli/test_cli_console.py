"""Output helpers: sizes, JSON without nonsense, logs in both forms, and memory counted once."""

from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.cli import logs
from tilewright.cli.console import byte_size, count, print_json, progress
from tilewright.cli.main import global_options_first
from tilewright.cli.tile_memory import covered

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (638976, "624.0 KiB"), (5 * 2**20, "5.0 MiB"),
     (3 * 2**30, "3.0 GiB"), (2**50, "1048576.0 GiB")],
)  # fmt: skip
def test_byte_size(number: int, text: str) -> None:
    assert byte_size(number) == text


def test_count() -> None:
    assert count(1472) == "1,472"


def test_json_has_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": 1.5})
    assert json.loads(capsys.readouterr().out) == {"a": 1.5}
    with pytest.raises(ValueError, match="JSON"):
        print_json({"a": float("nan")})


def test_stages_are_log_records_and_no_bar_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(logs.LogLevel.info, structured=True)
    with progress("work") as report:
        report("plan")
    record = json.loads(capsys.readouterr().err)
    assert (record["message"], record["stage"]) == ("work: plan", "plan")


def test_logs_in_both_forms(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("tilewright.somewhere")
    logs.configure(logs.LogLevel.info, structured=True)
    logger.debug("hidden")
    logger.info("seen %d", 3, extra={"stage": "plan"})
    record = json.loads(capsys.readouterr().err)
    assert (record["message"], record["stage"], record["level"]) == ("seen 3", "plan", "info")
    logs.configure(logs.LogLevel.warning, structured=False)
    logger.info("hidden")
    logger.warning("seen")
    assert capsys.readouterr().err == "WARNING tilewright.somewhere: seen\n"


ranges = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda pair: tuple(sorted(pair))))


@given(ranges)
def test_covered_counts_each_byte_once(pairs: list[tuple[int, int]]) -> None:
    assert covered(pairs) == len({byte for begin, end in pairs for byte in range(begin, end)})


@given(st.lists(st.sampled_from(["run", "--debug", "--quiet", "--log-level=info", "x", "--json"])))
def test_moving_global_options_keeps_the_rest_in_order(arguments: list[str]) -> None:
    own = ("run", "x", "--json")
    moved = global_options_first(arguments)
    kept = [argument for argument in arguments if argument in own]
    assert sorted(moved) == sorted(arguments)
    assert moved[len(moved) - len(kept) :] == kept


def test_moving_takes_the_value_along_and_stops_at_the_dashes() -> None:
    assert global_options_first(["run", "--log-level", "info"]) == ["--log-level", "info", "run"]
    assert global_options_first(["run", "--", "--debug"]) == ["run", "--", "--debug"]
    assert global_options_first(["run", "--log-level"]) == ["run", "--log-level"]

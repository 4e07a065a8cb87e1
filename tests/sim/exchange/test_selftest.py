"""Self-test programs give the right words, on time or late, and a wrong word is noticed and named."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tilewright.cli.main import app
from tilewright.errors import UsageError
from tilewright.ipu21.fabric.execute import execute
from tilewright.ipu21.fabric.schedule import schedule
from tilewright.ipu21.machine.memory import TILE_BASE, TILE_BYTES
from tilewright.ipu21.selftest.random_trials import FAN_OUT, SIZES, random_trial
from tilewright.ipu21.selftest.run import MismatchError, run_trial, selftest, strict_device
from tilewright.ipu21.selftest.scenarios import SCENARIOS
from tilewright.ipu21.selftest.trial import Exchange, Trial
from tilewright.ipu21.selftest.trial_memory import Memory
from tilewright.ipu21.simulator.device import SimulatedDevice

pytestmark = pytest.mark.sim


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    outcome = selftest("sim", seed=seed, count=1, tiles=2 + seed % 7, scenarios=[])[0]
    assert (outcome.fault, outcome.late) == ("", True)
    assert outcome.words > 0 and outcome.cycles is not None


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("tiles", [2, 16])
def test_scenarios(name: str, tiles: int) -> None:
    assert selftest("sim", seed=3, count=0, tiles=tiles, scenarios=[name])[0].fault == ""


@pytest.mark.parametrize("name", ["reduction", "permutation"])
def test_scenarios_on_all_tiles(name: str) -> None:
    with strict_device(1) as device:
        run_trial(SCENARIOS[name](1, 1472), 1, device, runs=1)


def test_a_program_on_all_tiles() -> None:
    with SimulatedDevice() as device:
        cycles, words = run_trial(random_trial(5, 1472), 5, device, runs=1)
    assert cycles is not None and words > 1_000_000


def test_programs_depend_on_the_seed_only() -> None:
    assert random_trial(4, 6) == random_trial(4, 6)
    assert random_trial(4, 6) != random_trial(5, 6)


def test_programs_reach_the_sizes_and_fan_outs_they_promise() -> None:
    messages = [
        message
        for seed in range(20)
        for step in random_trial(seed, 12).steps
        if isinstance(step, Exchange)
        for message in step.messages
    ]
    assert {message.words for message in messages} == set(SIZES)
    assert {len(message.receivers) for message in messages} == set(range(1, FAN_OUT + 1))
    assert any(message.source in dict(message.receivers) for message in messages)


@pytest.mark.parametrize("seed", range(3))
def test_the_meaning_of_a_phase_agrees_with_rows_carried_out_word_by_word(seed: int) -> None:
    trial = random_trial(seed, 4)
    memory = Memory(trial)
    memory.write(trial.initial(seed))
    first = trial.steps[0]
    assert isinstance(first, Exchange)
    memories = {tile: np.zeros(TILE_BYTES, np.uint8) for tile in trial.tiles}

    def words(area: str, tile: int) -> np.ndarray:
        place = next(a for a in trial.areas if a.name == area)
        begin = place.address - TILE_BASE
        return memories[tile][begin : begin + 4 * place.words].view(np.uint32)

    for row, tile in enumerate(trial.areas[0].tiles):
        words("source", tile)[:] = memory.contents["source"][row]
    execute(schedule(*first.arrays()).rows, memories)
    expected = Memory(Trial(trial.name, trial.areas, (first,)))
    expected.write(trial.initial(seed))
    results = expected.run()
    for row, tile in enumerate(trial.areas[1].tiles):
        np.testing.assert_array_equal(words("received", tile), results["received"][row])


def test_late_hosts_change_neither_words_nor_cycles() -> None:
    trial = SCENARIOS["through"](0, 8)
    clocks, cycles = [], []
    for seed in (None, 0, 1):
        with SimulatedDevice(acknowledge_delay_seed=seed) as device:
            cycles.append(run_trial(trial, 0, device)[0])
            clocks.append(device.clock)
    assert len(set(cycles)) == 1
    assert len(set(clocks)) == 3 and clocks[0] < min(clocks[1:])  # they really were late


def corrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge expects one bit to be different."""
    honest = Memory.run

    def run(self: Memory) -> dict[str, np.ndarray]:
        result = honest(self)
        next(iter(result.values()))[0, 3] ^= 0x100
        return result

    monkeypatch.setattr(Memory, "run", run)


def test_one_wrong_word_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = SCENARIOS["remote"](0, 2)
    corrupt(monkeypatch)
    with SimulatedDevice() as device, pytest.raises(MismatchError) as error:
        run_trial(trial, 0, device)
    place = trial.areas[1]
    assert f"run 1, tile {place.tiles[0]}, back at {place.address + 12:#x}" in error.value.what
    assert "1 words differ on 1 tiles" in error.value.what


def test_command_gives_a_verdict_in_one_line() -> None:
    done = CliRunner().invoke(app, ["selftest", "--count", "2", "--tiles", "3", "--no-scenarios"])
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == 1
    assert done.stdout.startswith("2 random programs and 0 scenarios on 3 tiles: every word is right (")


def test_command_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    corrupt(monkeypatch)
    options = ["selftest", "--count", "1", "--seed", "9", "--tiles", "3", "--no-scenarios"]
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 1
    again = "tilewright selftest --count 1 --no-scenarios --seed 9 --tiles 3 --device sim"
    assert f"  repeat with: {again}" in done.stdout.splitlines()
    assert "1 of 1 FAILED" in done.stdout
    report = json.loads(CliRunner().invoke(app, [*again.split()[1:], "--json"]).stdout)
    assert report["failed"] == 1 and report["trials"][0]["command"] == again
    assert "instead of" in report["trials"][0]["fault"]
    assert report["trials"][0]["fault"].endswith("; its rows are in order")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tiles", "1"], "1 tiles"),
        (["--tiles", "1473"], "1473 tiles"),
        (["--scenario", "nothing"], "there is no scenario 'nothing'"),
        (["--device", "ipu:0"], "ipu:0"),
        (["--device", "gpu"], "no device is called 'gpu'"),
    ],
)
def test_requests_that_make_no_sense(options: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["selftest", *options])
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


def test_names_of_scenarios_are_checked_before_anything_runs() -> None:
    with pytest.raises(UsageError, match="known: reduction"):
        selftest("sim", seed=0, count=10**6, tiles=16, scenarios=["?"])

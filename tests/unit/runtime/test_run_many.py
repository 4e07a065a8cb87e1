"""Many runs in one call: order, marks, commands, faults before the device is touched."""

from __future__ import annotations

import numpy as np
import pytest
from fake_device import FakeDevice
from package_sample import make_package

from tilewright.errors import BindingError
from tilewright.package import read_package, validate, write_package
from tilewright.package.records import Package
from tilewright.runtime import Session

pytestmark = pytest.mark.unit

WEIGHT_SUM = float(np.arange(320, dtype=np.float16).astype(np.float32).sum())
BATCHES = 3


def arrays(seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {
        "x": generator.integers(-50, 50, (4, 20)).astype(np.float32),
        "k": np.array(generator.integers(0, 9), np.int32),
    }


def several(invocations: int) -> Package:
    """A package whose commands make that many runs, as a file would bring it."""
    package = make_package()
    call = package.call("run")
    assert call is not None
    call.invocations, call.phases = invocations, 2 * BATCHES * invocations
    package.entry_points = []
    validate(package)
    return read_package(write_package(package))


@pytest.mark.parametrize(("invocations", "runs"), [(1, 5), (2, 4), (3, 3)])
def test_results_come_in_the_order_of_the_inputs(invocations: int, runs: int) -> None:
    device = FakeDevice()
    with Session(device, several(invocations)) as session:
        begun = len(device.events)
        results = session.run_many([arrays(seed) for seed in range(runs)])
        assert device.events[begun:] == ["gs2=1"] * 2 * BATCHES * runs
        record = session.last_run
    for seed, outputs in enumerate(results):
        given = arrays(seed)
        np.testing.assert_array_equal(outputs["y"], given["x"][:, :16] + given["k"] + np.float32(WEIGHT_SUM))
    assert record is not None
    assert record.cycles_each == (630,) * runs and record.cycles == 630 * runs
    assert len(record.intervals) == 2 * runs
    assert (record.bytes_in, record.bytes_out) == (264 * runs, 256 * runs)


@pytest.mark.parametrize(("invocations", "runs"), [(1, 0), (2, 1), (2, 3), (4, 6)])
def test_a_command_is_never_left_half_done(invocations: int, runs: int) -> None:
    device = FakeDevice()
    with Session(device, several(invocations)) as session:
        begun = len(device.events)
        with pytest.raises(BindingError, match=f"makes {invocations}: `run_many` takes a multiple"):
            session.run_many([arrays(0)] * runs)
        assert len(device.events) == begun
        assert len(session.run_many([arrays(0)] * 2 * invocations)) == 2 * invocations


def test_run_is_for_commands_of_one_run() -> None:
    with Session(FakeDevice(), several(2)) as session, pytest.raises(BindingError, match="run_many"):
        session.run(arrays(0))


def test_one_wrong_input_is_named_and_nothing_runs() -> None:
    device = FakeDevice()
    with Session(device, several(1)) as session:
        begun = len(device.events)
        wrong = {**arrays(1), "x": np.zeros((4, 21), np.float32)}
        with pytest.raises(BindingError, match=r"run 2 of 3.*shape \[4, 21\]"):
            session.run_many([arrays(0), wrong, arrays(2)])
        beyond = {**arrays(1), "x": np.full((4, 20), 1e9, np.float32)}
        with pytest.raises(BindingError, match="run 3 of 3, binding 'x'"):
            session.run_many([arrays(0), arrays(1), beyond])
        assert len(device.events) == begun

"""Sessions: the protocol, the checks before it, and what happens when a device fails."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import numpy as np
import pytest
from fake_device import FakeDevice
from package_sample import make_package

from tilewright.errors import BindingError, DeviceError, PackageError
from tilewright.package import save_package
from tilewright.runtime import Device, Session

pytestmark = pytest.mark.unit

WEIGHT_SUM = float(np.arange(320, dtype=np.float16).astype(np.float32).sum())


def arrays(seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {
        "x": generator.integers(-50, 50, (4, 20)).astype(np.float32),
        "k": np.array(generator.integers(0, 9), np.int32),
    }


def expected(inputs: dict[str, np.ndarray]) -> np.ndarray:
    return inputs["x"][:, :16] + inputs["k"] + np.float32(WEIGHT_SUM)


def test_the_fake_is_a_device() -> None:
    assert isinstance(FakeDevice(), Device)


def test_runs_repeat_and_weights_go_up_once() -> None:
    device = FakeDevice()
    with Session(device, make_package()) as session:
        for seed in range(3):
            outputs = session.run(arrays(seed))
            assert list(outputs) == ["y"] and outputs["y"].dtype == np.float32
            np.testing.assert_array_equal(outputs["y"], expected(arrays(seed)))
    start = ["load", "gs1=1", "detach", "attach 0", "attach 1", "gs2=1"]
    assert device.events == [*start, *["gs2=1"] * 4, *["gs2=1"] * 6 * 3, "detach"]


def test_last_run_is_measured() -> None:
    with Session(FakeDevice(), make_package()) as session:
        assert session.last_run is None and session.weight_bytes == 1024
        session.run(arrays())
        session.run(arrays())
        record = session.last_run
        assert record is not None
        assert record.cycles == 630
        assert len(record.intervals) == 2, "only those of the latest run"
        assert (record.bytes_in, record.bytes_out, record.host_bytes) == (264, 256, 520)
        assert record.seconds > 0


def test_package_may_be_a_path(tmp_path: Path) -> None:
    save_package(make_package(), tmp_path / "p.ipuexe")
    with Session(FakeDevice(), tmp_path / "p.ipuexe") as session:
        np.testing.assert_array_equal(session.run(arrays())["y"], expected(arrays()))


def test_missing_write_shows_as_poison() -> None:
    device = FakeDevice()
    with Session(device, make_package()) as session:
        session.run(arrays())
        device.silent = True
        bits = session.run(arrays())["y"].view(np.uint32)
        assert (bits == 0xA5A5A5A5).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "input 'x' is missing"),
        ({"z": np.zeros(1)}, "there is no input 'z'"),
        ({"x": np.zeros((4, 21), np.float32)}, r"input 'x': shape \[4, 21\] given, \[4, 20\] expected"),
        ({"x": np.zeros((4, 20))}, r"input 'x': float64 given, float32 expected \(convert it with .astype\)"),
        ({"k": np.array(1, np.int64)}, "input 'k': int64 given, int32 expected"),
        ({"k": 2**40}, "input 'k': a number does not fit int32"),
        ({"k": 1.5}, "input 'k': float64 given"),
        ({"x": [[1, 2], [3]]}, "input 'x': not a rectangular array"),
        ({"x": np.full((4, 20), "a")}, "input 'x': <U1 given"),
        ({"x": np.full((4, 20), 1e6, np.float32)}, r"binding 'x': .* at index \[0, 0\] is beyond the range"),
        ({"x": None, "k": None, "a": 1}, "'x' is missing; input 'k' is missing; there is no input 'a'"),
    ],
)  # fmt: skip
def test_wrong_arrays_never_reach_the_device(change: dict[str, object], message: str) -> None:
    device = FakeDevice()
    with Session(device, make_package()) as session:
        before = list(device.events)
        given = {name: value for name, value in {**arrays(), **change}.items() if value is not None}
        with pytest.raises(BindingError, match=message) as caught:
            session.run(given)  # type: ignore[arg-type]  # wrong on purpose
        if "binding" not in message:
            assert "the package takes x float32[4, 20], k int32[]" in str(caught.value)
        assert device.events == before
        np.testing.assert_array_equal(session.run(arrays())["y"], expected(arrays()))


def test_numbers_and_lists_take_the_host_type() -> None:
    with Session(FakeDevice(), make_package()) as session:
        inputs = arrays()
        outputs = session.run({"x": inputs["x"].tolist(), "k": int(inputs["k"])})
        np.testing.assert_array_equal(outputs["y"], expected(inputs))
        narrower = session.run({"x": inputs["x"].astype(np.int8), "k": np.int16(inputs["k"])})
        np.testing.assert_array_equal(narrower["y"], expected(inputs))


def test_failure_ends_the_session_and_frees_the_device() -> None:
    device = FakeDevice()
    session = Session(device, make_package())
    with pytest.raises(DeviceError, match="caught fire"), session:
        device.fail_at = 8
        with pytest.raises(DeviceError, match="caught fire"):
            session.run(arrays())
        with pytest.raises(DeviceError, match="the session is over since it failed: sim: tile 3 caught fire"):
            session.run(arrays())
        raise DeviceError("caught fire again")
    assert device.events[-1] == "detach"
    device.fail_at = None
    with Session(device, make_package()) as fresh:
        np.testing.assert_array_equal(fresh.run(arrays())["y"], expected(arrays()))


def test_failed_start_frees_the_device() -> None:
    device = FakeDevice()
    device.fail_at = 3
    with pytest.raises(DeviceError, match="caught fire"), Session(device, make_package()):
        pytest.fail("the block must not be entered")
    device.fail_at = None
    with Session(device, make_package()):
        pass


def test_closed_and_unstarted_sessions_refuse() -> None:
    session = Session(FakeDevice(), make_package())
    with pytest.raises(DeviceError, match="the session is not started"):
        session.run(arrays())
    with session:
        pass
    session.close()
    with pytest.raises(DeviceError, match="the session is closed"):
        session.run(arrays())
    with pytest.raises(DeviceError, match="was started before and is closed"):
        session.start()


def test_one_session_per_device() -> None:
    device = FakeDevice()
    with Session(device, make_package()) as first:
        with pytest.raises(DeviceError, match="sim: the device is in use by another session"):
            Session(device, make_package()).start()
        np.testing.assert_array_equal(first.run(arrays())["y"], expected(arrays()))
        with Session(FakeDevice(), make_package()):
            pass
    with Session(device, make_package()):
        pass


def test_forgotten_session_does_not_block_the_device() -> None:
    device = FakeDevice()
    Session(device, make_package()).start()
    gc.collect()
    with Session(device, make_package()):
        pass


def test_device_that_does_not_answer() -> None:
    device = FakeDevice()
    with Session(device, make_package(), timeout=0.01) as session:
        device.deaf = True
        with pytest.raises(DeviceError) as caught:
            session.run(arrays())
    assert str(caught.value) == (
        "sim, call 'run', phase 1 of 6 (input batch 1 of 2, entry): no answer in 0.01 s: mark GS2 reads 1, "
        "expected 0 (supervisors: 1470 waiting or inactive, 1 running, 1 faulted)"
    )


def test_interruption_ends_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    device = FakeDevice()
    with Session(device, make_package()) as session:

        def interrupt(_: str) -> int:
            raise KeyboardInterrupt

        monkeypatch.setattr(device, "read_mark", interrupt)
        with pytest.raises(KeyboardInterrupt):
            session.run(arrays())
        with pytest.raises(DeviceError, match="over since it failed: KeyboardInterrupt"):
            session.run(arrays())


def test_threads_take_turns() -> None:
    results: dict[int, np.ndarray] = {}
    with Session(FakeDevice(), make_package()) as session:

        def work(seed: int) -> None:
            for _ in range(5):
                results[seed] = session.run(arrays(seed))["y"]

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for seed in range(4):
        np.testing.assert_array_equal(results[seed], expected(arrays(seed)))


def test_provisional_words_are_for_the_simulator() -> None:
    card = FakeDevice("ipu:0")
    with pytest.raises(PackageError, match=r"ipu:0: 1 instructions have provisional .* 0x4c01c"):
        Session(card, make_package()).start()
    assert card.events == []
    package = make_package()
    package.provisional = package.provisional[:0]
    with Session(card, package):
        pass
    with Session(FakeDevice("sim"), make_package()):
        pass


def test_invalid_packages_never_reach_the_device() -> None:
    package = make_package()
    package.tiles.pop()
    device = FakeDevice()
    with pytest.raises(PackageError, match="1471 tiles"):
        Session(device, package).start()
    assert device.events == []


def test_package_without_a_call() -> None:
    package = make_package()
    package.inputs, package.outputs, package.entry_points = [], [], []
    package.host_exchange.calls.pop()

    class Idle(FakeDevice):
        def read_mark(self, register: str) -> int:
            self._marks["gs2"] = 0
            return 0

    with Session(Idle(), package) as session, pytest.raises(PackageError, match="has no call 'run'"):
        session.run()

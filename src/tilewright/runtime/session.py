"""A package on a device, ready to be called.

The protocol (version 1, ours; marks as documented in public host code, evidence: known): GS1 := 1; when GS2
reads 0 attach the pages; GS2 := 1 starts the program. Each batch of a call then takes two host barriers,
entry and completion, each released by GS2 := 1 and done when GS2 reads 0 again. Batches go strictly one after
another, so they may share pages. Weights are uploaded once by the call `initialize`; after that the program
waits for `run` any number of times.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tilewright.errors import BindingError, DeviceError, PackageError, TilewrightError
from tilewright.package import load_package, pack_slices, unpack_slices, validate
from tilewright.package.records import HostCall, Package
from tilewright.package.rules.exchange import INITIALIZE, RUN

from .arrays import check_inputs
from .device import Device, RecordsActivity
from .discovery import SIMULATOR
from .pages import POISON, HostPages, batches_of, moved_bytes
from .record import RunRecord, device_cycles

TIMEOUT_SECONDS = 10.0
"""How long a host barrier may take. A simulated chip answers only when it is done, however long that is."""
_POLL_SECONDS = 100e-6

_log = logging.getLogger(__name__)

_owners: weakref.WeakKeyDictionary[Device, weakref.ref[Session]] = weakref.WeakKeyDictionary()
_owners_lock = threading.Lock()


def _owner(device: Device) -> Session | None:
    reference = _owners.get(device)
    return reference() if reference is not None else None


class Session:
    """One package loaded on one device; use it as a context manager.

    Args:
        device: an open device. It serves one session at a time.
        package: a package, or the path of one.
        timeout: seconds a host barrier may take.
        activity: also record what tiles do inside their steps, where the device can (`RunRecord.activity`).

    Calls from several threads are served one after another. When the device fails, the session is over: every
    further use says so, and a new session starts from a fresh load.
    """

    def __init__(
        self,
        device: Device,
        package: Package | str | os.PathLike[str],
        *,
        timeout: float = TIMEOUT_SECONDS,
        activity: bool = False,
    ) -> None:
        self.device = device
        self.package = package if isinstance(package, Package) else load_package(package)
        self.timeout = timeout
        self.last_run: RunRecord | None = None
        """Measurements of the latest successful `run`."""
        self.weight_bytes = 0
        """Bytes moved by `initialize`: a weight that several tiles hold counts for each."""
        self._lock = threading.RLock()
        self._recorder = device if activity and isinstance(device, RecordsActivity) else None
        self._state = "not started"
        self._pages = HostPages(self.package.host_exchange)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except TilewrightError:
            # What ended the block says more than what then failed to close.
            if error is None:
                raise

    def start(self) -> None:
        """Load the package, attach the pages, meet the programs at their start and upload the weights.

        Raises PackageError for a package that this device must not run, DeviceError for a device in use or
        one that does not answer.
        """
        with self._lock:
            if self._state != "not started":
                raise DeviceError(
                    f"the session was started before and is {self._state}", where=self.device.name
                )
            validate(self.package)
            self._refuse_provisional()
            self._acquire()
            with self._driving(), self._releasing_on_error():
                if isinstance(self.device, RecordsActivity):
                    self.device.record_activity(self._recorder is not None)
                self.device.load(self.package)
                self.device.write_mark("gs1", 1)
                self._await_zero("session start")
                self.device.detach_all()
                for index, buffer in self._pages.in_attach_order():
                    self.device.attach(index, buffer)
                self._barrier("session start, pages attached")
                call = self.package.call(INITIALIZE)
                if call is not None:
                    data = b"".join(self.package.blobs[binding.blob] for binding in self.package.weights)
                    self._perform(call, data)
                    self.weight_bytes = moved_bytes(call.inputs)
            self._state = "open"
            _log.info("session on %s is open, %d weight bytes uploaded", self.device.name, self.weight_bytes)

    def run(self, inputs: Mapping[str, ArrayLike] | None = None) -> dict[str, NDArray[np.generic]]:
        """Run the program once.

        `inputs` maps every input's name to an array of its shape and host type (see `check_inputs`). Returns
        every output by name, in host type and shape. Raises BindingError before the device is touched, and
        DeviceError or the device's own error when the run fails.
        """
        return self.run_many([inputs or {}])[0]

    def run_many(self, inputs: Sequence[Mapping[str, ArrayLike]]) -> list[dict[str, NDArray[np.generic]]]:
        """Run the program once per element of `inputs`, in order; outputs in the same order.

        All inputs are checked and packed before the first run. The runs of one command
        (`HostCall.invocations`, usually 1) belong together, so their number must be a multiple of it. Raises
        what `run` raises.
        """
        with self._lock:
            if self._state != "open":
                raise DeviceError(f"the session is {self._state}", where=self.device.name)
            call = self.package.call(RUN)
            if call is None:
                raise PackageError("the package has no call 'run': nothing goes in and nothing comes out")
            if not inputs or len(inputs) % call.invocations:
                raise BindingError(
                    f"inputs for {len(inputs)} runs given",
                    hint=f"a command of this package makes {call.invocations}: `run_many` takes a multiple",
                )
            started = time.perf_counter()
            data = [self._pack(number, len(inputs), one) for number, one in enumerate(inputs)]
            results, intervals, activity = [], [], []
            with self._driving():
                for number, given in enumerate(data):
                    self.device.clear_intervals()
                    results.append(self._perform(call, given, number % call.invocations))
                    intervals.append(self.device.intervals())
                    if self._recorder is not None:
                        activity.append(self._recorder.activity())
            outputs = [self._unpack(result) for result in results]
            self.last_run = RunRecord(
                cycles_each=tuple(device_cycles(rows, self.package.profile.steps) for rows in intervals),
                intervals=np.concatenate(intervals),
                bytes_in=moved_bytes(call.inputs) * len(inputs),
                bytes_out=moved_bytes(call.outputs) * len(inputs),
                seconds=time.perf_counter() - started,
                activity=np.concatenate(activity) if activity else None,
                interval_counts=tuple(map(len, intervals)),
                activity_counts=tuple(map(len, activity)),
            )
            _log.info("run on %s took %s device cycles", self.device.name, self.last_run.cycles)
            return outputs

    def _pack(self, number: int, runs: int, inputs: Mapping[str, ArrayLike]) -> bytes:
        """The host byte string of one run's inputs."""
        try:
            arrays = check_inputs(self.package.inputs, inputs)
            return b"".join(pack_slices(binding, arrays[binding.name]) for binding in self.package.inputs)
        except BindingError as error:
            if runs == 1:
                raise
            where = f"run {number + 1} of {runs}" + (f", {error.where}" if error.where else "")
            raise BindingError(error.what, where=where, hint=error.hint) from error

    def _unpack(self, result: NDArray[np.uint8]) -> dict[str, NDArray[np.generic]]:
        """Outputs by name from the host byte string of one run."""
        outputs: dict[str, NDArray[np.generic]] = {}
        begin = 0
        for binding in self.package.outputs:
            end = begin + binding.nbytes
            outputs[binding.name] = unpack_slices(binding, result[begin:end].data)
            begin = end
        return outputs

    def close(self) -> None:
        """Take the pages back and free the device for another session. Closing twice is allowed."""
        with self._lock:
            if self._state == "closed":
                return
            self._state = "closed"
            if _owner(self.device) is self:
                self._release()

    def _acquire(self) -> None:
        with _owners_lock:
            if _owner(self.device) is not None:
                raise DeviceError("the device is in use by another session", where=self.device.name)
            _owners[self.device] = weakref.ref(self)

    def _release(self) -> None:
        try:
            self.device.detach_all()
        finally:
            with _owners_lock:
                _owners.pop(self.device, None)

    @contextmanager
    def _releasing_on_error(self) -> Iterator[None]:
        """A `with` block that fails to start never reaches its exit."""
        try:
            yield
        except BaseException:
            with suppress(TilewrightError):
                self._release()
            raise

    def _refuse_provisional(self) -> None:
        words = self.package.provisional
        if len(words) and self.device.name != SIMULATOR:
            raise PackageError(
                f"{len(words)} instructions have provisional encodings, one at {int(words['address'][0]):#x}",
                where=self.device.name,
                hint="their real encodings are not public; such a package runs on the simulator only",
            )

    @contextmanager
    def _driving(self) -> Iterator[None]:
        """The device's state is unknown after any interruption, so the session ends with it."""
        try:
            yield
        except BaseException as error:
            self._state = f"over since it failed: {str(error) or type(error).__name__}"
            raise

    def _perform(self, call: HostCall, data: bytes, invocation: int = 0) -> NDArray[np.uint8]:
        """One invocation of a call: the inputs' host byte string in, the outputs' out."""
        inputs, outputs = batches_of(call)
        source = np.frombuffer(data, np.uint8)
        result = np.full(sum(batch.nbytes for batch in outputs), POISON, np.uint8)
        if invocation == 0:
            self._pages.write_command(call.command)
        phase = call.phases // call.invocations * invocation
        for kind, batches in (("input", inputs), ("output", outputs)):
            for number, batch in enumerate(batches):
                if kind == "input":
                    batch.into_pages(self._pages, source)
                else:
                    batch.poison(self._pages)
                for barrier in ("entry", "completion"):
                    phase += 1
                    place = f"{kind} batch {number + 1} of {len(batches)}, {barrier}"
                    self._barrier(f"call {call.name!r}, phase {phase} of {call.phases} ({place})")
                # Only now is the device done with the batch's place in the pages.
                if kind == "output":
                    batch.from_pages(self._pages, result)
        return result

    def _barrier(self, moment: str) -> None:
        """Give the device one host barrier and wait until it has used it."""
        self.device.write_mark("gs2", 1)
        self._await_zero(moment)

    def _await_zero(self, moment: str) -> None:
        deadline = time.monotonic() + self.timeout
        while (mark := self.device.read_mark("gs2")) != 0:
            if time.monotonic() >= deadline:
                raise DeviceError(
                    f"no answer in {self.timeout:g} s: mark GS2 reads {mark}, expected 0",
                    where=f"{self.device.name}, {moment}",
                    hint=self._states(),
                )
            time.sleep(_POLL_SECONDS)

    def _states(self) -> str:
        names = {0: "waiting or inactive", 1: "running", 2: "stopped", 3: "faulted"}
        values, counts = np.unique(self.device.supervisor_states(), return_counts=True)
        parts = (
            f"{count} {names.get(int(value), f'in state {value}')}"
            for value, count in zip(values, counts, strict=True)
        )
        return f"supervisors: {', '.join(parts)}"

"""A device that keeps the marks protocol and computes y = x[:, :16] + k + sum(w) for the sample package.

It moves data through the pages at the barriers at which a chip would, and notes everything that happens.
"""

from __future__ import annotations

from collections.abc import Generator
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import DeviceError
from tilewright.package import Package, pack_slices, unpack_slices
from tilewright.package.records import HostCall
from tilewright.runtime.device import INTERVAL


class FakeDevice:
    def __init__(self, name: str = "sim") -> None:
        self.name = name
        self.events: list[str] = []
        self.fail_at: int | None = None
        """Number of the barrier at which the device breaks."""
        self.deaf = False
        """Never uses a credit."""
        self.silent = False
        """Never writes an output."""
        self.closed = False
        self.clock = 0
        self._package: Package | None = None

    # --- the protocol ---

    def load(self, package: Package) -> None:
        self.events.append("load")
        self._package = package
        self._pages: dict[int, NDArray[np.uint8]] = {}
        self._marks = {"gs1": 0, "gs2": 0}
        self._barriers = 0
        self._rows: list[tuple[int, int, int, int, int]] = []
        self._program = self._steps()
        next(self._program)  # up to the first host barrier

    def attach(self, index: int, buffer: NDArray[np.uint8]) -> None:
        self.events.append(f"attach {index}")
        assert buffer.ctypes.data % 4096 == 0 and not buffer.any()
        self._pages[index] = buffer

    def detach_all(self) -> None:
        self.events.append("detach")
        self._pages = {}

    def write_mark(self, register: str, value: int) -> None:
        assert self._marks[register] == 0, "a mark was written over another"
        self.events.append(f"{register}={value}")
        self._marks[register] = value if register == "gs2" else 0

    def read_mark(self, register: str) -> int:
        while self._marks["gs2"] and not self.deaf:
            self._barriers += 1
            if self._barriers == self.fail_at:
                raise DeviceError("tile 3 caught fire", where=self.name)
            next(self._program)
            self._marks["gs2"] -= 1
        return self._marks[register]

    def supervisor_states(self) -> NDArray[np.uint8]:
        return np.array([0] * 1470 + [1, 3], np.uint8)

    def intervals(self) -> NDArray[np.void]:
        return np.array(self._rows, INTERVAL)

    def clear_intervals(self) -> None:
        self._rows = []

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- the program: one `yield` per host barrier, which the next credit releases ---

    def _steps(self) -> Generator[None, None, None]:
        package = self._package
        assert package is not None
        yield  # session start
        initialize, run = package.call("initialize"), package.call("run")
        assert run is not None
        total = 0.0
        if initialize is not None:
            data = yield from self._take(initialize)
            total = float(unpack_slices(package.weights[0], data).sum())
        while True:
            data = yield from self._take(run)
            x, k = package.inputs
            y = unpack_slices(x, data[: x.nbytes])[:, :16] + unpack_slices(k, data[x.nbytes :])
            y = (y + total).astype(np.float32)
            self.clock += 1000
            self._rows += [
                (0, 0, 1, self.clock, self.clock + 500),
                (5, 0, 1, self.clock + 10, self.clock + 640),
            ]
            yield from self._give(run, pack_slices(package.outputs[0], y))

    def _take(self, call: HostCall) -> Generator[None, None, bytes]:
        size = int((call.inputs["file_offset"] + call.inputs["size"]).max())
        data = bytearray(size)
        begin = 0
        for end in call.input_batch_ends:
            yield  # entry
            command = int.from_bytes(self._pages[0][:4].tobytes(), "little")
            assert command == call.command
            for page, place, offset, count in call.inputs[begin:end].tolist():
                data[offset : offset + count] = self._pages[page][place : place + count].tobytes()
            yield  # completion
            begin = end
        return bytes(data)

    def _give(self, call: HostCall, data: bytes) -> Generator[None, None, None]:
        begin = 0
        for end in call.output_batch_ends:
            yield  # entry
            for page, place, offset, count in call.outputs[begin:end].tolist():
                where = self._pages[page][place : place + count]
                assert (where == 0xA5).all(), "output places are poisoned before the device writes"
                if not self.silent:
                    where[:] = np.frombuffer(data[offset : offset + count], np.uint8)
            yield  # completion
            begin = end

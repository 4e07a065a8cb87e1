"""The digits demo as a function: train, compile, run on the simulated chip, compare with the reference."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.compiler.pipeline import compile_graph
from tilewright.compiler.progress import Progress
from tilewright.ipu21.simulator.compile import is_kept
from tilewright.models import digits, digits_reference
from tilewright.profiling import ProfileBuilder
from tilewright.runtime import Session, open_device

from .tile_memory import tile_bytes_max


@dataclass(frozen=True, eq=False)
class DigitsResult:
    """What the demo found out.

    Attributes:
        labels, chip, reference: per held-out image its label, and the class that each computed.
        cycles: simulated device cycles for the whole batch, without host transfers.
        tile_bytes_max: bytes used on the fullest tile, of `tile_bytes`.
        train_seconds, compile_seconds, simulate_seconds: wall time on this computer.
        profile: the run's profile, if one was asked for.
    """

    tiles: int
    labels: NDArray[np.int64]
    chip: NDArray[np.int64]
    reference: NDArray[np.int64]
    cycles: int
    tile_bytes_max: int
    tile_bytes: int
    train_seconds: float
    compile_seconds: float
    simulate_seconds: float
    profile: ProfileBuilder | None = None

    @property
    def accuracy(self) -> float:
        """Share of images that the simulated chip classifies as labelled."""
        return float(np.mean(self.chip == self.labels))

    @property
    def reference_accuracy(self) -> float:
        """The same of the float32 reference."""
        return float(np.mean(self.reference == self.labels))

    @property
    def disagreements(self) -> list[int]:
        """Images that the two classify differently."""
        return [int(index) for index in np.flatnonzero(self.chip != self.reference)]

    @property
    def agreement(self) -> float:
        """Share of images that the two classify alike."""
        return 1 - len(self.disagreements) / len(self.labels)


def run_digits(tiles: int, progress: Progress | None = None, *, profile: bool = False) -> DigitsResult:
    """Train the network, compile it for `tiles` tiles and classify all held-out images in one run.

    Raises MissingDependencyError without scikit-learn, and what compiling and running raise.
    """
    report = progress or (lambda _: None)
    begin = time.perf_counter()
    report("train in NumPy")
    data = digits.load_data()
    parameters = digits.train(data)
    trained = time.perf_counter()
    graph = digits.network(parameters, batch=len(data.test_images)).graph()
    package = compile_graph(graph, tiles=tiles, progress=progress)
    compiled = time.perf_counter()
    report("simulate" if is_kept() else "build the simulator's native code, once, and simulate")
    builder = ProfileBuilder(package, name="digits", device="sim") if profile else None
    with open_device("sim") as device, Session(device, package, activity=profile) as session:
        logits = session.run({"x": data.test_images})["logits"]
        assert session.last_run is not None and session.last_run.cycles is not None
        cycles = session.last_run.cycles
        if builder is not None:
            builder.add(session.last_run)
    simulated = time.perf_counter()
    return DigitsResult(
        tiles=tiles,
        labels=data.test_labels,
        chip=np.argmax(logits, axis=1),
        reference=np.argmax(digits_reference.forward(parameters, data.test_images), axis=1),
        cycles=cycles,
        tile_bytes_max=tile_bytes_max(package),
        tile_bytes=package.tile_memory_size,
        train_seconds=trained - begin,
        compile_seconds=compiled - trained,
        simulate_seconds=simulated - compiled,
        profile=builder,
    )

"""The digits demo as a function: train, compile, run on the simulated chip, compare with the reference."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.compiler.cache import PackageCache
from tilewright.compiler.progress import Progress
from tilewright.models import digits, digits_reference
from tilewright.profiling import ProfileBuilder

from .simulated_run import compile_and_simulate


@dataclass(frozen=True, eq=False)
class DigitsResult:
    """What the demo found out.

    Attributes:
        labels, chip, reference: per held-out image its label, and the class that each computed.
        cycles: simulated device cycles for the whole batch, without host transfers.
        tile_bytes_max: bytes used on the fullest tile, of `tile_bytes`.
        train_seconds, compile_seconds, simulate_seconds: wall time on this computer.
        profile: the run's profile, if one was asked for.
        cached: the package was compiled before; compile_seconds are those of finding it.
        native_seconds: see `Execution`.
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
    cached: bool = False
    native_seconds: float = 0.0

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


def run_digits(
    tiles: int, progress: Progress | None = None, *, profile: bool = False, cache: PackageCache | None = None
) -> DigitsResult:
    """Train the network, compile it for `tiles` tiles and classify all held-out images in one run.

    `cache`: where compiled packages are kept, if anywhere. Raises MissingDependencyError without
    scikit-learn, and what compiling and running raise.
    """
    report = progress or (lambda _: None)
    begin = time.perf_counter()
    report("train in NumPy")
    data = digits.load_data()
    parameters = digits.train(data)
    trained = time.perf_counter()
    graph = digits.network(parameters, batch=len(data.test_images)).graph()
    inputs = [{"x": data.test_images}]
    done = compile_and_simulate(graph, inputs, report, tiles=tiles, cache=cache, profile=profile)
    return DigitsResult(
        tiles=tiles,
        labels=data.test_labels,
        chip=np.argmax(done.outputs[0]["logits"], axis=1),
        reference=np.argmax(digits_reference.forward(parameters, data.test_images), axis=1),
        cycles=done.cycles[0],
        tile_bytes_max=done.tile_bytes_max,
        tile_bytes=done.tile_bytes,
        train_seconds=trained - begin,
        compile_seconds=done.compile_seconds,
        simulate_seconds=done.simulate_seconds,
        profile=done.profile,
        cached=done.cached,
        native_seconds=done.native_seconds,
    )

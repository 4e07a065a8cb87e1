"""Sentence embeddings as a function: tokens, groups of equal program, runs, unit vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tilewright.compiler.progress import Progress
from tilewright.ipu21.machine.topology import CLOCK_HZ
from tilewright.models.minilm.checkpoint import load_checkpoint
from tilewright.models.minilm.grouping import Group, group
from tilewright.models.minilm.lookup import arrays, unit_vectors
from tilewright.models.minilm.network import OUTPUT, network
from tilewright.models.minilm.tokenizer import Tokenizer

from .simulated_run import Execute, Execution


@dataclass(frozen=True, eq=False)
class EmbedResult:
    """What embedding some sentences gave.

    Attributes:
        sentences, vectors: each text, and its vector of length one as a row, float32 [sentences, hidden].
        cut: indices of the sentences that had more tokens than the model reads, `max_tokens`.
        programs: per compiled program its group of sentences and what its runs gave.
    """

    sentences: tuple[str, ...]
    vectors: NDArray[np.float32]
    cut: tuple[int, ...]
    max_tokens: int
    programs: tuple[tuple[Group, Execution], ...]

    @property
    def similarity(self) -> NDArray[np.float32]:
        """Cosine of every sentence with every other, float32 [sentences, sentences]."""
        result: NDArray[np.float32] = np.clip(self.vectors @ self.vectors.T, -1, 1)
        return result

    @property
    def cycles(self) -> int:
        """Device cycles of all runs, one after another."""
        return sum(sum(execution.cycles) for _, execution in self.programs)

    @property
    def sentences_per_second(self) -> float:
        """Sentences over the time of those cycles at the card's clock, transfers to the host not counted."""
        return len(self.sentences) * CLOCK_HZ / self.cycles

    @property
    def compile_seconds(self) -> float:
        """Wall time of all compilations on this computer."""
        return sum(execution.compile_seconds for _, execution in self.programs)

    @property
    def simulate_seconds(self) -> float:
        """Wall time of all simulations on this computer."""
        return sum(execution.simulate_seconds for _, execution in self.programs)

    @property
    def native_seconds(self) -> float:
        """Wall time of making native code that this computer had not got."""
        return sum(execution.native_seconds for _, execution in self.programs)

    @property
    def tile_bytes_max(self) -> int:
        """Bytes used on the fullest tile by the program that uses most."""
        return max(execution.tile_bytes_max for _, execution in self.programs)

    @property
    def tile_bytes(self) -> int:
        """Bytes that a tile has."""
        return self.programs[0][1].tile_bytes


def embed(
    folder: Path,
    sentences: Sequence[str],
    *,
    execute: Execute,
    batch: int | None = None,
    progress: Progress | None = None,
) -> EmbedResult:
    """Embed one or more sentences with the checkpoint in `folder`; `execute` computes each program.

    `batch` is the number of sentences per run; without it, one that suits how many there are. Raises what
    `load_checkpoint`, `Tokenizer` and `execute` raise, before any computing as far as the files are at fault.
    """
    report = progress or (lambda _: None)
    report("read the model")
    checkpoint = load_checkpoint(folder)
    config = checkpoint.config
    tokens = Tokenizer(folder, config).encode(sentences)
    vectors = np.zeros((len(sentences), config.hidden), np.float32)
    programs = []
    for part in group([len(one.ids) for one in tokens], config.max_tokens, batch):
        where = f"{part.tokens} tokens"
        report(f"{where}, trace")
        graph = network(checkpoint, batch=part.batch, tokens=part.tokens).graph()
        inputs = [
            arrays(checkpoint, [tokens[i].ids for i in run], batch=part.batch, tokens=part.tokens)
            for run in part.runs
        ]
        execution = execute(graph, inputs, _within(where, report))
        for run, outputs in zip(part.runs, execution.outputs, strict=True):
            vectors[list(run)] = unit_vectors(outputs[OUTPUT])[: len(run)]
        programs.append((part, execution))
    cut = tuple(index for index, one in enumerate(tokens) if one.cut)
    return EmbedResult(tuple(sentences), vectors, cut, config.max_tokens, tuple(programs))


def _within(where: str, report: Progress) -> Progress:
    return lambda stage: report(f"{where}, {stage}")

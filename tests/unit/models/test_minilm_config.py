"""The architecture of a checkpoint: read with its defaults, and refused by name where it is another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_checkpoint import CONFIG, MAX_TOKENS, POSITIONS, write_checkpoint

from tilewright.errors import ModelError, TilewrightError, UnsupportedError, UsageError
from tilewright.models.minilm.config import read_config

pytestmark = pytest.mark.unit


def test_everything_is_read(tmp_path: Path) -> None:
    config = read_config(write_checkpoint(tmp_path))
    assert (config.layers, config.hidden, config.heads, config.intermediate) == (2, 32, 2, 48)
    assert (config.vocabulary, config.positions, config.types) == (14, 40, 2)
    assert (config.epsilon, config.approximate) == (1e-12, "none")
    assert (config.max_tokens, config.pooling, config.lower_case) == (MAX_TOKENS, "mean", False)


def test_what_is_left_out(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    (tmp_path / "sentence_bert_config.json").unlink()
    assert read_config(tmp_path).max_tokens == POSITIONS
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": null, "do_lower_case": true}')
    config = read_config(tmp_path)
    assert (config.max_tokens, config.lower_case) == (POSITIONS, True)


@pytest.mark.parametrize(("name", "form"), [("gelu", "none"), ("gelu_new", "tanh")])
def test_forms_of_gelu(tmp_path: Path, name: str, form: str) -> None:
    assert read_config(write_checkpoint(tmp_path, config={"hidden_act": name})).approximate == form


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"model_type": "roberta"}, UnsupportedError, "architecture is 'roberta' (BertModel)"),
        ({"model_type": None, "architectures": 3}, UnsupportedError, "architecture is None"),
        ({"hidden_act": "relu"}, UnsupportedError, "hidden_act is 'relu'"),
        ({"position_embedding_type": "relative_key"}, UnsupportedError, "'relative_key'"),
        ({"hidden_size": 33}, ModelError, "hidden_size 33 is not a multiple of 2"),
        ({"hidden_size": "32"}, ModelError, "hidden_size is '32', not a whole number"),
        ({"num_hidden_layers": 0}, ModelError, "num_hidden_layers is 0"),
        ({"num_hidden_layers": True}, ModelError, "num_hidden_layers is True"),
        ({"vocab_size": 10**12}, ModelError, "vocab_size is 1000000000000"),
        ({"layer_norm_eps": "small"}, ModelError, "layer_norm_eps is 'small'"),
        ({"layer_norm_eps": -1.0}, ModelError, "layer_norm_eps is -1.0"),
        ({"intermediate_size": None}, ModelError, "intermediate_size is None"),
    ],
)
def test_refused(tmp_path: Path, changes: dict[str, Any], kind: type[TilewrightError], message: str) -> None:
    write_checkpoint(tmp_path, config=changes)
    with pytest.raises(kind) as caught:
        read_config(tmp_path)
    assert message in str(caught.value) and caught.value.where == str(tmp_path / "config.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ("\xff", "not JSON"),
        ("[" * 9999, "not JSON"),
    ],
)
def test_files_that_are_no_configuration(tmp_path: Path, text: str, message: str) -> None:
    write_checkpoint(tmp_path)
    (tmp_path / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ModelError, match=message):
        read_config(tmp_path)


@pytest.mark.parametrize("longest", [0, 1, POSITIONS + 1, "long"])
def test_impossible_lengths(tmp_path: Path, longest: object) -> None:
    write_checkpoint(tmp_path)
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": longest}))
    with pytest.raises(ModelError, match="max_seq_length"):
        read_config(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"config\.json: cannot read"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("modes", "pooling"),
    [
        (["pooling_mode_mean_tokens"], "mean"),
        (["pooling_mode_cls_token"], "first"),
        (["pooling_mode_max_tokens"], None),
        (["pooling_mode_mean_tokens", "pooling_mode_cls_token"], None),
        ([], None),
    ],
)
def test_pooling(tmp_path: Path, modes: list[str], pooling: str | None) -> None:
    write_checkpoint(tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    settings = {"word_embedding_dimension": CONFIG["hidden_size"], **dict.fromkeys(modes, True)}
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(settings))
    if pooling is None:
        with pytest.raises(UnsupportedError, match="pooling is "):
            read_config(tmp_path)
    else:
        assert read_config(tmp_path).pooling == pooling

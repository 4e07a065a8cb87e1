"""Texts to ids: by the checkpoint's tokenizer, but never by its settings for truncation and padding."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest
from tiny_checkpoint import CLS, MAX_TOKENS, SEP, write_checkpoint

from tilewright.errors import MissingDependencyError, ModelError, UsageError
from tilewright.models.minilm.config import Config, read_config
from tilewright.models.minilm.tokenizer import Tokenizer

pytestmark = pytest.mark.unit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path)


@pytest.fixture
def config(folder: Path) -> Config:
    return read_config(folder)


def test_ids(folder: Path, config: Config) -> None:
    tokens = Tokenizer(folder, config).encode(["The cats, café.", "", "\n\t "])
    assert tokens[0].ids == (CLS, 8, 5, 10, 1, 11, 12, SEP)
    assert [one.ids for one in tokens[1:]] == [(CLS, SEP)] * 2
    assert not any(one.cut for one in tokens)


def test_neither_padded_nor_cut_as_the_file_says(folder: Path, config: Config) -> None:
    """The file pads to 12 and cuts at 6; the sentence settings say 24."""
    tokenizer = Tokenizer(folder, config)
    for words, length, cut in (
        (1, 3, False),
        (20, 22, False),
        (22, 24, False),
        (23, 24, True),
        (99, 24, True),
    ):
        (tokens,) = tokenizer.encode([" ".join(["cat"] * words)])
        assert (len(tokens.ids), tokens.cut) == (length, cut)
        assert tokens.ids == (CLS, *[5] * (length - 2), SEP)
    assert MAX_TOKENS == 24


def test_lower_casing_is_the_sentence_settings_choice(folder: Path, config: Config) -> None:
    text = (folder / "tokenizer.json").read_text()
    assert '"lowercase": true' in text
    (folder / "tokenizer.json").write_text(text.replace('"lowercase": true', '"lowercase": false'))
    assert Tokenizer(folder, config).encode(["CAT"])[0].ids == (CLS, 1, SEP)
    lowering = dataclasses.replace(config, lower_case=True)
    assert Tokenizer(folder, lowering).encode(["CAT"])[0].ids == (CLS, 5, SEP)


def test_what_is_no_text(folder: Path, config: Config) -> None:
    with pytest.raises(UsageError, match="sentence 2 is not valid text at character 5"):
        Tokenizer(folder, config).encode(["a cat", "a ca\udce9t"])


def test_an_id_without_an_embedding(folder: Path, config: Config) -> None:
    small = dataclasses.replace(config, vocabulary=10)
    with pytest.raises(ModelError, match="gives id 13 for a text, the embedding table has 10 rows"):
        Tokenizer(folder, small).encode(["a dog"])


@pytest.mark.parametrize("text", ["", "{}", "[1, 2]", '{"model": {"type": "WordPiece"}}'])
def test_files_that_are_no_tokenizer(folder: Path, config: Config, text: str) -> None:
    (folder / "tokenizer.json").write_text(text)
    with pytest.raises(ModelError, match=r"tokenizer\.json: no tokenizer"):
        Tokenizer(folder, config)


def test_a_missing_file(folder: Path, config: Config) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(UsageError, match=r"tokenizer\.json: cannot read"):
        Tokenizer(folder, config)


def test_without_the_package(folder: Path, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'tilewright\[embed\]'"):
        Tokenizer(folder, config)

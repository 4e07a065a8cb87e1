"""A checkpoint folder of all-MiniLM-L6-v2's form that is small enough to make in a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LAYERS, HIDDEN, HEADS, INNER, POSITIONS = 2, 32, 2, 48, 40
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "a",
    "cat",
    "sits",
    "on",
    "the",
    "mat",
    "##s",
    "cafe",
    ".",
    "dog",
]
CLS, SEP = 2, 3
MAX_TOKENS = 24

CONFIG: dict[str, Any] = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": POSITIONS,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "type_vocab_size": 2,
    "vocab_size": len(WORDS),
}

Tensors = dict[str, NDArray[Any]]


def make_tensors(seed: int = 0) -> Tensors:
    """Random parameters under the names of the published file, linear weights [outputs, inputs]."""
    generator = np.random.default_rng(seed)

    def normal(*shape: int) -> NDArray[np.float32]:
        return (generator.standard_normal(shape) * 0.3).astype(np.float32)

    tensors: Tensors = {
        "embeddings.word_embeddings.weight": normal(len(WORDS), HIDDEN),
        "embeddings.position_embeddings.weight": normal(POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": normal(2, HIDDEN),
        "embeddings.position_ids": np.arange(POSITIONS)[None],
        "pooler.dense.weight": normal(HIDDEN, HIDDEN),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        base = f"encoder.layer.{layer}"
        for name, outputs, inputs in (
            ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", INNER, HIDDEN),
            ("output.dense", HIDDEN, INNER),
        ):
            tensors[f"{base}.{name}.weight"] = normal(outputs, inputs)
            tensors[f"{base}.{name}.bias"] = normal(outputs)
        norms += [f"{base}.attention.output.LayerNorm", f"{base}.output.LayerNorm"]
    for name in norms:
        tensors[f"{name}.weight"] = 1 + normal(HIDDEN)
        tensors[f"{name}.bias"] = normal(HIDDEN)
    return tensors


def write_checkpoint(
    folder: Path, tensors: Tensors | None = None, config: dict[str, Any] | None = None
) -> Path:
    """Write all files of a checkpoint into `folder`, which is made; `config` changes entries of CONFIG."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | (config or {})))
    sentence = {"max_seq_length": MAX_TOKENS, "do_lower_case": False}
    (folder / "sentence_bert_config.json").write_text(json.dumps(sentence))
    save_file(make_tensors() if tensors is None else tensors, folder / "model.safetensors")
    write_tokenizer(folder / "tokenizer.json")
    return folder


def write_tokenizer(path: Path) -> None:
    """WordPiece as BERT's, with settings of its own for truncation and padding that must not be used."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = [("[CLS]", CLS), ("[SEP]", SEP)]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=special)
    tokenizer.enable_truncation(6)
    tokenizer.enable_padding(length=12)
    tokenizer.save(str(path))

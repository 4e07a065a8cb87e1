"""A model larger than the tiles' memory: the error says which class, what, how long, and what would do."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import PlacementError, UsageError

pytestmark = pytest.mark.unit


def product(m: int, k: int, n: int) -> tw.Graph:
    w = np.ones((k, n), np.float32)
    return tw.trace(lambda x: x @ w, x=tw.TensorType((m, k)))


def test_the_message_names_class_buffers_lifetimes_and_a_tile_count_that_does() -> None:
    graph = product(64, 1024, 1024)
    with pytest.raises(PlacementError) as caught:
        tw.compile(graph, tiles=2)
    text = str(caught.value)
    assert re.search(r"tile class \d+ \(\d+ tiles\)", text)
    assert "w 1,048,576 bytes for matmul_0, input to output" in text
    assert "live at" in text and "available" in text
    enough = int(re.search(r"([\d,]+) tiles would do", text).group(1).replace(",", ""))  # type: ignore[union-attr]  # asserted by use
    assert tw.compile(graph, tiles=enough).images
    with pytest.raises(PlacementError):
        tw.compile(graph, tiles=enough // 2)


def test_a_model_no_chip_can_hold_says_so() -> None:  # its input alone has 1 GiB
    graph = product(4096, 131_072, 16)
    with pytest.raises(PlacementError, match="even 1,472 tiles would not do"):
        tw.compile(graph, tiles=1472)


@pytest.mark.parametrize("tiles", [0, -1, 1473])
def test_impossible_tile_counts(tiles: int) -> None:
    with pytest.raises(UsageError, match=r"1,472"):
        tw.compile(product(4, 16, 16), tiles=tiles)

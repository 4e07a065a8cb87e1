"""What reading a text with faults in it must do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tilewright.errors import TilewrightError
from tilewright.graph import parse_graph


def check_damaged(text: str, data: Mapping[str, Any]) -> None:
    """It still means something, or one line says where it does not."""
    try:
        parse_graph(text, data, filename="f").verify()
    except TilewrightError as error:
        assert str(error).startswith("f:") and "\n" not in str(error)


def check_mistake(text: str, data: Mapping[str, Any], before: str, after: str, message: str) -> None:
    """With `after` for the first `before`, the text is refused with this message."""
    assert before in text
    with pytest.raises(TilewrightError) as caught:
        parse_graph(text.replace(before, after, 1), data, filename="f")
    assert message in str(caught.value)

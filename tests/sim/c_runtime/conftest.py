"""Every test of this folder runs on both engines."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["reference", "translated"])
def engines(request: pytest.FixtureRequest) -> str:
    """The engines in use."""
    return str(request.param)

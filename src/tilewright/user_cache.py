"""Where things are kept between processes: one folder in the user's cache, with an area for each kind."""

from __future__ import annotations

import os
from pathlib import Path


def cache_area(name: str) -> Path:
    """The folder of one kind of kept things; it may not exist yet.

    It lies in `tilewright` below XDG_CACHE_HOME, or below ~/.cache when that is unset or, as the XDG base
    directory specification asks, no absolute path. Raises RuntimeError when there is no home directory.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "tilewright" / name

"""How a long pass tells whoever waits for it how far it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]
"""Called with the name of each stage as it begins."""

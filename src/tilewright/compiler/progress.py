"""How a long pass tells whoever waits for it how far it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with (stage, done, total) as work advances; `total` 0 means that the length is not known."""

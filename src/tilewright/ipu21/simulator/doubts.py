"""What programs rely on although no public source says that the machine can do it: told, once."""

from __future__ import annotations

import logging
from functools import cache

_log = logging.getLogger(__name__)


@cache
def warn_of_rounding_down() -> None:
    """Tell that a program has used $FP_CTL.RND = 2; whether the chip can do that is open."""
    _log.warning(
        "a worker rounds to minus infinity ($FP_CTL.RND = 2): simulated so, but a published comment says "
        "that the chip cannot be put into that mode"
    )

"""The linked code every tile carries: start-up, runtime routines, kernels; assembled once per process."""

from __future__ import annotations

from functools import lru_cache

from ..kernels import ACTIVE_SOURCES, IDLE_SOURCES, link_kernels
from ..toolchain import LinkedImage
from .memory_map import PROGRAM


@lru_cache(maxsize=1)
def active_runtime() -> LinkedImage:
    """For tiles that compute: full start-up, all kernels."""
    return link_kernels(ACTIVE_SOURCES, {"tile_program": PROGRAM})


@lru_cache(maxsize=1)
def idle_runtime() -> LinkedImage:
    """For tiles that only keep the barriers or request host traffic for others."""
    return link_kernels(IDLE_SOURCES, {"tile_program": PROGRAM})

"""What the workers of a tile keep between launches."""

from __future__ import annotations

ACCUMULATORS_SURVIVE_EXIT = True
"""Accumulators keep their values from `exitz` to the next `runall`, as main and auxiliary registers do (known
for the registers: published kernels depend on it; open for the accumulators: the published instruction
descriptions name nothing that clears them, no published kernel depends on it). The matrix kernels have a form
for either answer."""

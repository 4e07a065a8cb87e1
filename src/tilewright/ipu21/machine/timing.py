"""Cycle constants of the tile processor, each once.

Evidence tags: `known` (published), `derived` (fitted to published measurements), `assumed` (our choice where
nothing is known). One cycle is one tile clock.
"""

from __future__ import annotations

WORKER_SLOTS = 6
"""Issue slots per rotation; worker w issues in cycle w of each rotation (known)."""

SUPERVISOR_LATENCY = 6
"""A dependent supervisor instruction issues this many cycles after its producer (derived)."""
SUPERVISOR_BRANCH = 6
"""Cycles of a taken supervisor branch, call included; not taken: 1 (derived)."""

RUN_LAUNCH = 10
"""Cycles from the issue of `run`/`runall` to the workers' first rotation (derived; the sum 28 with
RUN_RELEASE is fitted to hardware, the split is assumed)."""
RUN_RELEASE = 18
"""Cycles from the end of the last worker's last slot to the instruction after `sync 2` (see RUN_LAUNCH)."""

BARRIER_INTERNAL = 250
"""Cycles from the last arrival at an internal barrier to event 0 on every tile (assumed form; published
measurements lie between 229 and 294)."""
BARRIER_HOST = 0
"""Cycles added by a host barrier; host time is reported apart from device cycles (assumed)."""

PUT_IN_ROW = 13
"""Events taken by `put` to an exchange base register inside a row (known for INCOMING_BASE and
OUTGOING_BASE, assumed for the other INCOMING_*/OUTGOING_* registers)."""

MULTI_SLOT: dict[str, int] = {
    "f32exp": 3,
    "f32exp2": 3,
    "f32ln": 6,
    "f32log2": 6,
    "f32tanh": 5,
    "f32sigm": 5,
    "f32sqrt": 4,
    "f32oox": 2,
    "f32oorx": 3,
    "f32div": 3,
    "f16v2exp": 2,
    "f16v2exp2": 2,
    "f16v2ln": 2,
    "f16v2log2": 2,
    "f16v2tanh": 2,
    "f16v2sigm": 2,
}
"""Issue slots of the worker instructions that take more than one (derived from published estimators; data
dependence is open). Everything else takes one slot. `f16v2exp` of zero takes one slot (known)."""

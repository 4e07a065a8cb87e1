"""Device kernels: assembly, contracts, cycle formulas, NumPy references; and linking them into an image."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from ..machine.memory import IMAGE_BASE
from ..toolchain import LinkedImage, ObjectFile, assemble, link
from . import (
    add,
    add_row,
    attention_merge,
    attention_merge_few,
    attention_merge_straight,
    copy,
    copy_spans,
    gelu,
    gemm,
    gemm_f32,
    gemm_tables,
    half_sums,
    l2_normalise,
    normalise,
    normalise_once,
    permute,
    reduce,
    root,
    root_f32,
    root_few,
    root_straight,
    rounding,
    row_sums,
    runtime,
    scale,
    softmax,
    transpose,
)
from .kernel import Contract, Kernel, Operand, Scalar

__all__ = [
    "CODE_END",
    "COMPUTING",
    "IDLE",
    "KERNELS",
    "STRAIGHT",
    "Contract",
    "Kernel",
    "Operand",
    "Scalar",
    "link_kernels",
]

CODE_END = 0x50000
"""Linked kernels fill [IMAGE_BASE, CODE_END), one memory element that no exchange touches."""

_ALWAYS = (gemm.KERNEL, add.KERNEL, add_row.KERNEL, gelu.KERNEL, reduce.KERNEL, copy.COPY, copy.FILL)
_ON_DEMAND = (
    *gemm.STARTED,
    *gemm_f32.KERNELS,
    *root.KERNELS,
    *root_f32.KERNELS,
    *softmax.KERNELS,
    *attention_merge.KERNELS,
    *scale.KERNELS,
    row_sums.KERNEL,
    half_sums.KERNEL,
    normalise.KERNEL,
    l2_normalise.KERNEL,
    transpose.KERNEL,
    permute.KERNEL,
    *gemm.BY_LIST,
)

KERNELS: dict[str, Kernel] = {kernel.symbol: kernel for kernel in (*_ALWAYS, *_ON_DEMAND)}

STRAIGHT = {
    **gemm_tables.straight_sources(),
    **root_straight.straight_sources(),
    **root_few.few_sources(),
    **attention_merge_straight.straight_sources(),
    **attention_merge_few.few_sources(),
    **normalise_once.once_sources(),
}
"""Code without a loop over what a program has a fixed number of, linked only if it is asked for: middle
panels of the float16 matrix kernels, half rows of the float16 roots, and rows that are merged or normalised.
"""

_ROUTINES: dict[str, Callable[[], str]] = {
    **STRAIGHT,
    runtime.START: runtime.start_source,
    runtime.START_IDLE: runtime.start_idle_source,
    runtime.HOST_FOLLOWER: runtime.host_follower_source,
    rounding.SET_ROUNDING: rounding.set_rounding_source,
    copy_spans.SYMBOL: copy_spans.source,
}

COMPUTING: tuple[str, ...] = (runtime.START, runtime.HOST_FOLLOWER, "copy_u64")
"""What every tile that computes carries, whatever else; the start-up comes first."""
IDLE: tuple[str, ...] = (runtime.START_IDLE, runtime.HOST_FOLLOWER)
"""What a tile that only keeps the barriers carries."""


def source_of(name: str) -> str:
    """Assembly of a kernel or runtime routine. Raises KeyError."""
    return KERNELS[name].source() if name in KERNELS else _ROUTINES[name]()


def object_of(name: str) -> ObjectFile:
    """The assembled object of a kernel or runtime routine; members of a family may share one."""
    if name in KERNELS:
        name = next(other for other, kernel in KERNELS.items() if kernel.source == KERNELS[name].source)
    return _assembled(name)


@cache
def _assembled(name: str) -> ObjectFile:
    return assemble(source_of(name), filename=f"{name}.S")


def link_kernels(
    names: Sequence[str], externals: Mapping[str, int], more: tuple[int, int] | None = None
) -> LinkedImage:
    """Link kernels and runtime routines in the given order from IMAGE_BASE on.

    Args:
        names: keys of KERNELS or names of runtime routines. A start-up routine must come first and becomes
            the entry.
        externals: addresses of symbols defined elsewhere; a start-up routine needs `tile_program`.
        more: addresses to go on at when [IMAGE_BASE, CODE_END) is full.

    Raises LinkError if they do not fit or a symbol is missing.
    """
    starts = [name for name in names if name in (runtime.START, runtime.START_IDLE)]
    return link(
        list({id(item): item for item in map(object_of, names)}.values()),
        intervals=((IMAGE_BASE, CODE_END), more) if more else ((IMAGE_BASE, CODE_END),),
        entry=starts[0] if starts else None,
        roots=list(names),
        externals=externals,
    )

"""Pieces of assembly that several kernels share."""

from __future__ import annotations

from collections.abc import Iterable

Pair = tuple[str, str]
"""Two instructions for one issue slot: main and auxiliary."""


def section(symbol: str, lines: Iterable[str], *, front: Iterable[str] = ()) -> str:
    """A text section of its own with one global function, 8-byte aligned so that `rpt` bodies can be.

    `front` lies before the function's entry.
    """

    def text(part: Iterable[str]) -> str:
        return "".join(f"{line}\n" if line.endswith(":") else f"  {line}\n" for line in part)

    return (
        f'.section .text.{symbol}, "ax"\n.balign 8\n.globl {symbol}\n.type {symbol}, @function\n'
        f"{text(front)}{symbol}:\n{text(lines)}.size {symbol}, . - {symbol}\n"
    )


def bundle(main: str, aux: str = "fnop") -> str:
    """Two instructions for one issue slot."""
    return f"{{ {main} ; {aux} }}"


def lines_of(pairs: Iterable[Pair]) -> list[str]:
    """The pairs as bundles, or alone where nothing goes along."""
    return [main if auxiliary == "fnop" else bundle(main, auxiliary) for main, auxiliary in pairs]


CLEAR_ACCUMULATORS = ("setzi $a0, 8", "uput $FP_CLR, $a0")
"""Two instructions for the auxiliary pipeline, by $a0; 8 means all accumulators."""


def from_frame(register: str, word: int) -> str:
    """Load a word of a worker's frame."""
    return f"ld32 {register}, $mvertex_base, $mzero, {word}"


def size_of(lines: Iterable[str]) -> int:
    """Bytes of instructions and bundles; labels take none. Directives must not occur."""
    return sum(0 if line.endswith(":") else 8 if line.startswith("{") else 4 for line in lines)


def count_instructions(lines: Iterable[str]) -> int:
    """Instructions and bundles, each an issue slot of straight code. Directives must not occur."""
    return sum(not line.endswith(":") for line in lines)


def routine(lines: Iterable[str]) -> list[str]:
    """`worker` for code that begins with its label."""
    label, *body = lines
    return worker(label.removesuffix(":"), body)


def worker(label: str, lines: Iterable[str]) -> list[str]:
    """Worker code placed so that the body of its first `rpt` is 8-byte aligned, without a padding slot."""
    body = list(lines)
    before = next((index + 1 for index, line in enumerate(body) if line.startswith("{ rpt")), 0)
    padding = ["nop"] if size_of(body[:before]) % 8 else []
    return [".balign 8", *padding, f"{label}:", *body]

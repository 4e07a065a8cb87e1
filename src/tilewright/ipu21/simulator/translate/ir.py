"""Text of one LLVM function under construction."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field


def double_text(value: float) -> str:
    """A double constant, exactly."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


@dataclass
class Builder:
    """Collects instructions; every `alloca` goes to the entry block, where `sroa` finds it.

    Attributes:
        allocas: lines of the entry block before `lines`.
        lines: everything else in order.
        externals: declarations of functions that are called.
        closed: the last instruction ended a block. dead: what follows up to the next label is never reached.
    """

    allocas: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    externals: dict[str, str] = field(default_factory=dict)
    closed: bool = False
    dead: bool = False
    _count: int = 0

    def name(self, hint: str = "v") -> str:
        """A fresh local name without its `%`."""
        self._count += 1
        return f"{hint}{self._count}"

    def op(self, text: str) -> str:
        """An instruction with a result; returns the result's name."""
        if self.closed:
            self.label(self.name("dead"))
            self.dead = True
        result = f"%{self.name()}"
        self.lines.append(f"  {result} = {text}")
        return result

    def join(self, operation: str, kind: str, one: str, other: str) -> str:
        """`add` or `or` of two numbers, one of which may be a zero."""
        if "0" in (one, other):
            return one if other == "0" else other
        return self.op(f"{operation} {kind} {one}, {other}")

    def do(self, text: str) -> None:
        """An instruction without a result."""
        if self.closed:
            self.label(self.name("dead"))
            self.dead = True
        self.lines.append(f"  {text}")

    def end(self, text: str) -> None:
        """An instruction that ends the block; dropped where the block has already ended."""
        if not self.closed:
            self.lines.append(f"  {text}")
            self.closed = True

    def label(self, name: str) -> None:
        """Begin a block, falling into it if the last one is open."""
        if not self.closed:
            self.lines.append(f"  br label %{name}")
        self.lines.append(f"{name}:")
        self.closed = self.dead = False

    def jump(self, name: str) -> None:
        self.end(f"br label %{name}")

    def branch(self, condition: str, yes: str, no: str, weights: str = "") -> None:
        """Two-way branch on an `i1`."""
        self.end(f"br i1 {condition}, label %{yes}, label %{no}{weights}")

    def alloca(self, kind: str, hint: str = "a", alignment: int = 0) -> str:
        """Stack room; returns its pointer."""
        result = f"%{self.name(hint)}"
        tail = f", align {alignment}" if alignment else ""
        self.allocas.append(f"  {result} = alloca {kind}{tail}")
        return result

    def load(self, kind: str, pointer: str, alignment: int = 0) -> str:
        tail = f", align {alignment}" if alignment else ""
        return self.op(f"load {kind}, ptr {pointer}{tail}")

    def store(self, kind: str, value: str, pointer: str, alignment: int = 0) -> None:
        tail = f", align {alignment}" if alignment else ""
        self.do(f"store {kind} {value}, ptr {pointer}{tail}")

    def at(self, pointer: str, kind: str, index: int | str) -> str:
        """Pointer to an element; an index is a number or the name of an i64."""
        if index == 0:
            return pointer
        return self.op(f"getelementptr {kind}, ptr {pointer}, i64 {index}")

    def call(self, result: str, function: str, arguments: str) -> str:
        """Call a function declared elsewhere, by its name without `@`. Empty string for `void`."""
        kinds = ", ".join(argument.strip().rsplit(" ", 1)[0] for argument in _split(arguments))
        self.externals.setdefault(function, f"declare {result} @{function}({kinds})")
        text = f"call {result} @{function}({arguments})"
        if result == "void":
            self.do(text)
            return ""
        return self.op(text)

    def text(self, header: str) -> str:
        """The whole function; `header` is everything before the brace."""
        if not self.closed:
            self.end("unreachable")
        return "\n".join([f"{header} {{", "entry:", *self.allocas, *self.lines, "}", ""])


def _split(arguments: str) -> list[str]:
    """Arguments at top-level commas; vector and struct types contain none that matter here."""
    pieces, depth, begin = [], 0, 0
    for index, letter in enumerate(arguments):
        if letter in "<{[(":
            depth += 1
        elif letter in ">}])":
            depth -= 1
        elif letter == "," and depth == 0:
            pieces.append(arguments[begin:index])
            begin = index + 1
    if arguments[begin:].strip():
        pieces.append(arguments[begin:])
    return pieces

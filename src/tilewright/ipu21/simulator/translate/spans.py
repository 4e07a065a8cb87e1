"""Spans of bytes that a translated worker touches: kept while they grow, recorded when they end.

For every pointer register the code has at most one open span of loads and one of stores. The next bytes
that are touched through it either continue that span or end it; what ends goes to the records (see
`recording`), and so do the open ones at the exit. Blocks of memory are copied before the first store into
them (see `runtime`).
"""

from __future__ import annotations

from collections.abc import Set

from ...machine.memory import REGION1_BASE
from . import reasons
from . import scratch as sc
from .accesses import Terms
from .frame import Frame

COLD = ", !prof !0"
"""Attached to branches that are hardly ever taken to their first target."""

Pointer = tuple[bool, str, int, int]
"""Whether it stores, and the unknown that an address begins with (see `accesses`)."""


def pointer_of(store: bool, terms: Terms) -> Pointer:
    """The pointer of an address; all those that no register holds share one."""
    for (kind, first, second), _ in terms:
        if kind in ("m", "field"):
            return store, kind, first, second
    return store, "new", 0, 0


class SpanEmitter(Frame):
    """Emits the records of accesses."""

    def __init__(self, wide_pairs: Set[int]) -> None:
        super().__init__(wide_pairs)
        self.bail_reasons: set[int] = set()
        self._open: dict[Pointer, int] = {}

    def bail(self, reason: int) -> str:
        """Label of the block that gives up the launch for a reason (see `reasons`)."""
        self.bail_reasons.add(reason)
        return f"bail_{reason}"

    def bail_if(self, condition: str, reason: int) -> None:
        """Give up the launch if an i1 is true."""
        go_on = self.builder.name("ok")
        self.builder.branch(condition, self.bail(reason), go_on, COLD)
        self.builder.label(go_on)

    def note_span(self, store: bool, terms: Terms, low: str, high: str) -> None:
        """The bytes from an i64 address to another, all in memory, are touched through a pointer."""
        build = self.builder
        pointer = pointer_of(store, terms)
        if pointer not in self._open:
            self._open[pointer] = len(self._open)
            for name in self._names(pointer):
                build.allocas += [f"  {name} = alloca i64", f"  store i64 0, ptr {name}"]
        names = self._names(pointer)
        if store:
            self._keep_blocks(low, high, *names[2:])
        begin, end = names[:2]
        first, last = build.load("i64", begin), build.load("i64", end)
        after = build.op(f"icmp sgt i64 {low}, {last}")
        before = build.op(f"icmp slt i64 {high}, {first}")
        other, same = build.name("other"), build.name("same")
        build.branch(build.op(f"or i1 {after}, {before}"), other, same, COLD)
        build.label(other)
        self._close(store, first, last)
        build.store("i64", low, begin)
        build.store("i64", high, end)
        build.label(same)
        for name, limit, value in ((begin, "smin", low), (end, "smax", high)):
            both = f"i64 {build.load('i64', name)}, i64 {value}"
            build.store("i64", build.call("i64", f"llvm.{limit}.i64", both), name)

    def record_span(self, store: bool, low: str, high: str) -> str:
        """The same for bytes that no pointer is expected to go on from; an i64, not zero for a store that the
        other engine must do."""
        bad = self._prepare_store(low, high) if store else "0"
        self._close(store, low, high)
        return bad

    def _prepare_store(self, low: str, high: str) -> str:
        size = self.builder.op(f"sub i64 {high}, {low}")
        return self.builder.call("i64", "tw.runtime.prepare_store", f"ptr %scratch, i64 {low}, i64 {size}")

    def close_spans(self) -> None:
        """At the exit."""
        for pointer in self._open:
            begin, end = self._names(pointer)[:2]
            self._close(pointer[0], self.builder.load("i64", begin), self.builder.load("i64", end))

    def _names(self, pointer: Pointer) -> list[str]:
        """Variables of a pointer: begin and end of its span and, for stores, of memory that was copied."""
        number = self._open[pointer]
        return [f"%span{number}.{index}" for index in range(4 if pointer[0] else 2)]

    def _close(self, store: bool, first: str, last: str) -> None:
        numbers = f"i64 {int(store)}, i64 {first}, i64 {last}"
        self.builder.call("i64", "tw.recording.close_span", f"ptr %scratch, {numbers}")

    def _keep_blocks(self, low: str, high: str, begin: str, end: str) -> None:
        """Before a store, unless its blocks have been copied already, and are no code."""
        build = self.builder
        before = build.op(f"icmp slt i64 {low}, {build.load('i64', begin)}")
        behind = build.op(f"icmp sgt i64 {high}, {build.load('i64', end)}")
        copy, kept = build.name("copy"), build.name("kept")
        build.branch(build.op(f"or i1 {before}, {behind}"), copy, kept, COLD)
        build.label(copy)
        bad = self._prepare_store(low, high)
        self.bail_if(build.op(f"icmp ne i64 {bad}, 0"), reasons.ADDRESS)
        block = 1 << sc.BLOCK_LOG
        code = build.op(f"icmp slt i64 {low}, {REGION1_BASE}")
        raised = build.op(f"add i64 {high}, {block - 1}")
        for name, value in ((begin, low), (end, raised)):
            whole = build.op(f"and i64 {value}, {-block}")
            build.store("i64", build.op(f"select i1 {code}, i64 0, i64 {whole}"), name)
        build.label(kept)

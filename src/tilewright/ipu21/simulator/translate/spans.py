"""Spans of bytes that a translated worker touches: kept while they grow, recorded when they end.

For every pointer register the code has at most one open span of loads and one of stores. The next bytes
that are touched through it either continue that span or end it; what ends goes to the records (see
`recording`), and so do the open ones at the exit. Blocks of memory are copied before the first store into
them (see `runtime`).
"""

from __future__ import annotations

from collections.abc import Set

from ...machine.memory import REGION1_BASE, TILE_BASE, TILE_BYTES
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
        ended, begun = build.name("ended"), build.name("begun")
        build.branch(build.op(f"icmp ne i64 {last}, 0"), ended, begun, COLD)
        build.label(ended)
        self._close(store, first, last)
        build.label(begun)
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

    def record_comb(self, store: bool, ends: tuple[str, str], step: str, count: str, size: int) -> None:
        """`count` accesses of `size` bytes, an i64 `step` apart that is wider, all in memory between two i64
        addresses."""
        build = self.builder
        low, high = ends
        if store:
            bad = self._prepare_store(low, high)
            self.bail_if(build.op(f"icmp ne i64 {bad}, 0"), reasons.ADDRESS)
        offset = build.op(f"sub i64 {low}, {TILE_BASE}")
        apart = build.call("i64", "llvm.abs.i64", f"i64 {step}, i1 true")
        numbers = f"i64 {int(store)}, i64 {offset}, i64 {apart}, i64 {count}, i64 {size}"
        build.call("i64", "tw.recording.record_comb", f"ptr %scratch, {numbers}")

    def _prepare_store(self, low: str, high: str) -> str:
        size = self.builder.op(f"sub i64 {high}, {low}")
        return self.builder.call("i64", "tw.runtime.prepare_store", f"ptr %scratch, i64 {low}, i64 {size}")

    def close_spans(self) -> None:
        """At the exit: add the open spans to the records, by a call each only if there is no room for all."""
        build = self.builder
        for store in (False, True):
            mine = [pointer for pointer in self._open if pointer[0] == store]
            if not mine:
                continue
            spans = [[build.load("i64", name) for name in self._names(pointer)[:2]] for pointer in mine]
            worker = build.load("i64", build.at("%scratch", "i64", sc.WORKER))
            kind = build.op(f"add i64 {build.op(f'shl i64 {worker}, 1')}, {int(store)}")
            place = build.at(build.at("%scratch", "i64", sc.RUN_COUNTS), "i64", kind)
            count = build.load("i64", place)
            after = build.op(f"add i64 {count}, {len(mine)}")
            full, room, done = build.name("full"), build.name("room"), build.name("closed")
            build.branch(build.op(f"icmp ugt i64 {after}, {sc.MOST_RUNS}"), full, room, COLD)
            build.label(full)
            for first, last in spans:
                self._close(store, first, last)
            build.jump(done)
            build.label(room)
            runs = build.op(f"inttoptr i64 {build.load('i64', build.at('%scratch', 'i64', sc.RUNS))} to ptr")
            begin = build.op(f"add i64 {build.op(f'mul i64 {kind}, {2 * sc.MOST_RUNS}')}, {count}")
            begin = build.op(f"add i64 {begin}, {count}")
            for index, (first, last) in enumerate(spans):
                # None: what begins behind all memory and ends before it meets nothing.
                none = build.op(f"icmp eq i64 {last}, 0")
                low = build.op(f"and i64 {build.op(f'sub i64 {first}, {TILE_BASE}')}, -4")
                high = build.op(f"and i64 {build.op(f'sub i64 {last}, {TILE_BASE - 3}')}, -4")
                for half, value, nothing in ((0, low, TILE_BYTES), (1, high, 0)):
                    kept = build.op(f"select i1 {none}, i64 {nothing}, i64 {value}")
                    at = build.at(build.at(runs, "i64", begin), "i64", 2 * index + half)
                    build.store("i64", kept, at)
            build.store("i64", after, place)
            build.label(done)

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

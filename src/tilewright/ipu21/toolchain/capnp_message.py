"""A bounded reader of packed Cap'n Proto messages, as far as `.gp` archives need it.

Nothing in the message is trusted: sizes are checked before memory is taken, pointers before they are
followed, and the number of words visited is limited, so that no message can cost more than its limits.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ...errors import ObjectError

MAXIMUM_WORDS = 1 << 25
"""Words a message may unpack to (256 MiB)."""
MAXIMUM_SEGMENTS = 512
MAXIMUM_DEPTH = 32
_POINTER = struct.Struct("<Q")


def unpack(data: bytes, *, name: str, words: int = MAXIMUM_WORDS) -> bytes:
    """The message behind the packing, at most `words` words of it.

    Each word is a tag byte with a bit per byte that is not zero, then those bytes. A zero tag is followed by
    the number of further zero words, a full tag by the number of words that follow as they are. Raises
    ObjectError when the data ends early or would unpack to more than `words`.
    """
    out = bytearray()
    position, end, limit = 0, len(data), 8 * words
    while position < end:
        tag = data[position]
        position += 1
        if tag == 0 or tag == 0xFF:
            size = 8 if tag else 0
            if position + size >= end:
                raise ObjectError("the packed message is cut off", where=f"{name}+{position:#x}")
            count = data[position + size]
            if len(out) + 8 * (count + 1) > limit:
                raise ObjectError(f"the message unpacks to over {words} words", where=name)
            if tag == 0:
                out += bytes(8 * (count + 1))
                position += 1
                continue
            out += data[position : position + 8]
            position += 9
            if position + 8 * count > end:
                raise ObjectError("the packed message is cut off", where=f"{name}+{position:#x}")
            out += data[position : position + 8 * count]
            position += 8 * count
            continue
        if len(out) + 8 > limit:
            raise ObjectError(f"the message unpacks to over {words} words", where=name)
        word = bytearray(8)
        for bit in range(8):
            if tag >> bit & 1:
                if position >= end:
                    raise ObjectError("the packed message is cut off", where=f"{name}+{position:#x}")
                word[bit] = data[position]
                position += 1
        out += word
    return bytes(out)


def looks_packed(data: bytes) -> bool:
    """True if data is no text and begins with a plausible segment table."""
    if not data or b"\0" not in data:
        return False
    tag, position = data[0], 1
    word = bytearray(8)
    for bit in range(8):
        if tag >> bit & 1:
            if position >= len(data):
                return False
            word[bit] = data[position]
            position += 1
    count = int.from_bytes(word[:4], "little") + 1
    return count <= MAXIMUM_SEGMENTS and 0 < int.from_bytes(word[4:], "little") <= MAXIMUM_WORDS


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct of a message: where its data and its pointers are, in words of one segment."""

    message: Message
    segment: int
    start: int
    data_words: int
    pointers: int
    depth: int

    def struct(self, index: int) -> Struct | None:
        """The struct behind pointer `index`, or None when it is null or absent. Raises ObjectError."""
        target = self._follow(index)
        if target is None:
            return None
        segment, place, word = target
        if word & 3:
            raise self.message.fault("a struct is expected", segment, place)
        start = place + 1 + _signed(word >> 2 & 0x3FFFFFFF, 30)
        return self.message.struct(segment, start, word >> 32 & 0xFFFF, word >> 48, self.depth + 1)

    def structs(self, index: int) -> list[Struct]:
        """The structs of the list behind pointer `index`; empty when it is null. Raises ObjectError."""
        found = self._list(index)
        if found is None:
            return []
        segment, start, kind, count = found
        if kind != 7:
            raise self.message.fault(f"a list of structs is expected, not of kind {kind}", segment, start)
        tag = self.message.word(segment, start)
        number = tag >> 2 & 0x3FFFFFFF
        data_words, pointers = tag >> 32 & 0xFFFF, tag >> 48
        size = data_words + pointers
        if tag & 3 or number * size > count:
            raise self.message.fault("the list's tag does not fit its size", segment, start)
        if size == 0 and number > MAXIMUM_SEGMENTS:
            raise self.message.fault(f"a list of {number} empty structs", segment, start)
        return [
            self.message.struct(segment, start + 1 + size * place, data_words, pointers, self.depth + 1)
            for place in range(number)
        ]

    def data(self, index: int) -> bytes:
        """The bytes behind pointer `index` (Data, or Text with its final zero). Raises ObjectError."""
        found = self._list(index)
        return b"" if found is None else self.message.data(*found)

    def datas(self, index: int) -> list[bytes]:
        """The elements of the list of Data behind pointer `index`. Raises ObjectError."""
        found = self._list(index)
        if found is None:
            return []
        segment, start, kind, count = found
        if kind != 6:
            raise self.message.fault(f"a list of pointers is expected, not of kind {kind}", segment, start)
        holder = self.message.struct(segment, start, 0, count, self.depth + 1)
        return [holder.data(place) for place in range(count)]

    def text(self, index: int) -> str:
        """The text behind pointer `index`. Raises ObjectError."""
        return self.data(index).rstrip(b"\0").decode(errors="replace")

    def _list(self, index: int) -> tuple[int, int, int, int] | None:
        """Segment, first word, element kind and count of the list behind a pointer."""
        target = self._follow(index)
        if target is None:
            return None
        segment, place, word = target
        if word & 3 != 1:
            raise self.message.fault("a list is expected", segment, place)
        start = place + 1 + _signed(word >> 2 & 0x3FFFFFFF, 30)
        return segment, start, word >> 32 & 7, word >> 35

    def _follow(self, index: int) -> tuple[int, int, int] | None:
        """Segment, place and content of pointer `index`, far pointers resolved."""
        if index >= self.pointers:
            return None
        return self.message.pointer(self.segment, self.start + self.data_words + index)


class Message:
    """The segments of an unpacked message."""

    def __init__(self, data: bytes, *, name: str) -> None:
        """Raises ObjectError when the segment table does not fit the data."""
        self.name = name
        if len(data) < 8:
            raise ObjectError("the message is cut off", where=name)
        count = int.from_bytes(data[:4], "little") + 1
        if count > MAXIMUM_SEGMENTS or len(data) < 4 * (count + 1):
            raise ObjectError(f"{count} segments in a message of {len(data)} bytes", where=name)
        sizes = struct.unpack(f"<{count}I", data[4 : 4 + 4 * count])
        start = -(-(4 + 4 * count) // 8) * 8
        if start + 8 * sum(sizes) > len(data):
            raise ObjectError(f"the segments need {8 * sum(sizes)} bytes, there are {len(data)}", where=name)
        self._segments: list[bytes] = []
        for size in sizes:
            self._segments.append(data[start : start + 8 * size])
            start += 8 * size
        # A message whose parts are all visited once needs no more than its own size.
        self._budget = 2 * sum(sizes) + 1024

    def root(self) -> Struct:
        """The root struct. Raises ObjectError."""
        holder = self.struct(0, 0, 0, 1, 0)
        found = holder.struct(0)
        if found is None:
            raise ObjectError("the message is empty", where=self.name)
        return found

    def fault(self, what: str, segment: int, place: int) -> ObjectError:
        return ObjectError(what, where=f"{self.name}, segment {segment}, word {place}")

    def word(self, segment: int, place: int) -> int:
        """One word. Raises ObjectError when it is outside its segment."""
        if not 0 <= segment < len(self._segments) or not 0 <= place < len(self._segments[segment]) // 8:
            raise self.fault("a pointer leads outside the message", segment, place)
        return int(_POINTER.unpack_from(self._segments[segment], 8 * place)[0])

    def struct(self, segment: int, start: int, data_words: int, pointers: int, depth: int) -> Struct:
        """A struct after checking that it is inside. Raises ObjectError."""
        if depth > MAXIMUM_DEPTH:
            raise self.fault(f"pointers are nested over {MAXIMUM_DEPTH} deep", segment, start)
        self._spend(data_words + pointers, segment, start)
        return Struct(self, segment, start, data_words, pointers, depth)

    def data(self, segment: int, start: int, kind: int, count: int) -> bytes:
        """Bytes of a list of bytes. Raises ObjectError."""
        if kind != 2:
            raise self.fault(f"bytes are expected, not elements of kind {kind}", segment, start)
        self._spend(-(-count // 8), segment, start)
        return self._segments[segment][8 * start : 8 * start + count]

    def pointer(self, segment: int, place: int) -> tuple[int, int, int] | None:
        """Segment, place and content of a pointer after far pointers; None when it is null."""
        word = self.word(segment, place)
        if word == 0:
            return None
        if word & 3 == 2:
            double, target, number = bool(word & 4), word >> 3 & 0x1FFFFFFF, word >> 32
            landing = self.word(number, target)
            if not double:
                if landing & 3 == 2:
                    raise self.fault("a far pointer leads to another", number, target)
                return (number, target, landing) if landing else None
            if landing & 7 != 2:
                raise self.fault("a double far pointer leads to no far pointer", number, target)
            tag = self.word(number, target + 1)
            # The object begins at the landing's target: a pointer just before it with offset zero.
            return landing >> 32, (landing >> 3 & 0x1FFFFFFF) - 1, tag & ~0xFFFFFFFC
        if word & 3 == 3:
            raise self.fault("a capability is no data", segment, place)
        return segment, place, word

    def _spend(self, words: int, segment: int, start: int) -> None:
        if not 0 <= segment < len(self._segments) or start < 0:
            raise self.fault("a pointer leads outside the message", segment, start)
        if start + words > len(self._segments[segment]) // 8:
            raise self.fault(f"{words} words reach outside the segment", segment, start)
        self._budget -= words + 1
        if self._budget < 0:
            raise self.fault("the message refers to its parts more often than it has words", segment, start)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value

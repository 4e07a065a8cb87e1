"""What is done once everything is placed: open values are filled in, repeat bodies are checked."""

from __future__ import annotations

from . import relocations
from .diagnostics import SourceFault
from .emission import (
    CodeFixup,
    DataFixup,
    Emitter,
    NumberFixup,
    PlacedRelocation,
    RelocationRequest,
    RepeatBody,
    pack,
)
from .expressions import Address, evaluate
from .instructions import encode_instruction, named_relocation
from .leb128 import leb128

_DATA_TYPES = {1: relocations.R8, 2: relocations.R16, 4: relocations.R32, 8: relocations.R64}


def settle_code(emitter: Emitter, fixup: CodeFixup) -> None:
    """Patch an instruction whose values were open. Raises SourceFault."""
    encoded = encode_instruction(fixup.instruction, coissue=fixup.coissue, final=True)
    assert encoded is not None  # the final attempt either encodes or raises
    data = b"".join(word.to_bytes(4, "little") for word in encoded.words)
    fixup.section.data[fixup.offset : fixup.offset + len(data)] = data
    if encoded.relocation is not None:
        number, value, place = encoded.relocation
        emitter.relocations.append(
            PlacedRelocation(fixup.section, fixup.offset, number, value, fixup.statement, place)
        )


def settle_data(emitter: Emitter, fixup: DataFixup) -> None:
    """Patch a data item whose value was open. Raises SourceFault, about the item's place."""
    try:
        value = evaluate(fixup.value)
    except SourceFault as fault:
        raise SourceFault(fault.message, fixup.place, hint=fault.hint) from None
    if isinstance(value, int):
        data = pack(value, fixup.size, fixup.place)
        fixup.section.data[fixup.offset : fixup.offset + fixup.size] = data
        return
    number = _DATA_TYPES[fixup.size]
    if value.modifier is not None:
        number = named_relocation(value.modifier, fixup.place)
        size = relocations.TYPES[number].size
        if size != fixup.size:
            raise SourceFault(f"@{value.modifier} fills {size} bytes, this has {fixup.size}", fixup.place)
    emitter.relocations.append(
        PlacedRelocation(fixup.section, fixup.offset, number, value, fixup.statement, fixup.place)
    )


def settle_number(emitter: Emitter, fixup: NumberFixup) -> None:
    """Patch a LEB128 number; one that needs more bytes than it has is remembered. Raises SourceFault."""
    value = evaluate(fixup.value)
    if not isinstance(value, int):
        raise SourceFault("the value is known only after linking", fixup.place)
    check_number(value, fixup.signed, fixup.place)
    lengths = emitter.layout.lengths
    data = leb128(value, signed=fixup.signed, least=lengths[fixup.index])
    if len(data) > lengths[fixup.index]:
        lengths[fixup.index] = len(data)
        return
    fixup.section.data[fixup.offset : fixup.offset + len(data)] = data


def check_number(value: int, signed: bool, place: int) -> None:
    """Raise SourceFault for a LEB128 number outside 64 bits."""
    least, most = (-(1 << 63), (1 << 63) - 1) if signed else (0, (1 << 64) - 1)
    if not least <= value <= most:
        raise SourceFault(f"the value is {value}, not in {least}..{most}", place)


def settle_request(emitter: Emitter, request: RelocationRequest) -> None:
    """Place a relocation the source asked for. Raises SourceFault."""
    offset, value = evaluate(request.offset), evaluate(request.value)
    if isinstance(offset, Address):
        if offset.symbol.section is not request.section:
            raise SourceFault("the place must be in the current section", request.place)
        offset = offset.symbol.offset + offset.addend
    kind = relocations.TYPES[request.type]
    if not 0 <= offset <= request.section.offset - kind.size or request.section.type == "nobits":
        raise SourceFault(f"{kind.name} at {offset} reaches outside its section", request.place)
    if isinstance(value, int):
        raise SourceFault("a relocation needs a symbol", request.place)
    emitter.relocations.append(
        PlacedRelocation(request.section, offset, request.type, value, request.statement, request.place)
    )


def check_repeat(emitter: Emitter, body: RepeatBody) -> None:
    """Raise SourceFault for the first thing wrong with a repeat body, naming the statement at fault."""
    value = evaluate(body.instruction.operands[1].value)
    if not isinstance(value, int):
        return  # already refused when the rpt itself was encoded
    code = emitter.code.get(body.section, {})
    line = emitter.where(body.statement.line)
    for number in range(value + 1):
        place = body.start + 8 * number
        found = code.get(place)
        if found is None:
            what = "ends before its body does" if place >= body.section.offset else "has data here"
            raise body.instruction.fault(
                f"the body of this rpt is {value + 1} bundle{'s' if value else ''}, but the section {what}"
                f" (bundle {number + 1})",
                hint="the second operand counts bundles minus one",
            )
        forms, statement = found
        if not forms:
            return  # a fault was found here already
        if len(forms) != 2:
            raise SourceFault(
                f"the body of the rpt on {line} takes bundles only",
                hint="write { instruction ; fnop } or { nop ; instruction }, or check the body's length",
                statement=statement,
            )
        bad = next((item for item in forms if item.flags & {"control", "system"}), None)
        if bad is not None:
            raise SourceFault(
                f"`{bad.mnemonic}` cannot be in the body of an rpt ({line})",
                hint="control and system instructions are not repeated",
                statement=statement,
            )

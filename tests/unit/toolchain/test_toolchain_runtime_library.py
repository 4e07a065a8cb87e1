"""What a link takes of the C runtime functions: what nothing else defines, and of that what is reached."""

from __future__ import annotations

import pytest

from tilewright.errors import LinkError
from tilewright.ipu21.toolchain import LinkedImage, ObjectFile, assemble, link
from tilewright.ipu21.toolchain.runtime_library import FOLDER, member, members

pytestmark = pytest.mark.unit

CALLER = """
.section .text.start, "ax"
.globl start
start:
    call $m10, {}
    br $m10
"""


def caller(name: str) -> ObjectFile:
    return assemble(CALLER.format(name), filename="caller.S")


def section_names(image: LinkedImage) -> set[str]:
    return {name for segment in image.segments for name, _ in segment.sections}


def test_the_names_are_those_the_sources_define() -> None:
    for source in sorted(path.name for path in FOLDER.glob("*.S")):
        symbols = [symbol for symbol in member(source).symbols if symbol.binding != "local"]
        defined = {symbol.name for symbol in symbols if symbol.defined}
        assert defined == {name for name, home in members().items() if home == source}
        assert all(symbol.binding == "weak" for symbol in symbols if symbol.defined)
        assert {symbol.name for symbol in symbols if not symbol.defined} <= set(members())


@pytest.mark.parametrize("roots", [(), ("start",)])
def test_only_what_is_reached_is_taken(roots: tuple[str, ...]) -> None:
    image = link([caller("__moddi3")], roots=roots)
    assert section_names(image) == {".text.start", ".text.__moddi3", ".text.__divide_long"}
    assert image.stack_sizes == {"__moddi3": 16}


def test_members_need_members() -> None:
    image = link([caller("__addsf3")])
    assert {"__addsf3", "__adddf3", "__single_to_double", "__double_to_single"} <= set(image.symbols)
    assert "__subsf3" not in image.symbols


def test_a_root_may_be_one() -> None:
    assert "memset" in link([caller("__st8")], roots=["start", "memset"]).symbols
    image = link([caller("__st8")], entry="__st8")
    assert image.entry == image.symbols["__st8"] and section_names(image) == {".text.__st8"}


@pytest.mark.parametrize("binding", ["globl", "weak"])
def test_a_definition_of_the_program_wins(binding: str) -> None:
    own = assemble(f'.section .text.memset, "ax"\n.{binding} memset\nmemset: trap 3\n')
    alone = link([caller("memset"), own])
    assert section_names(alone) == {".text.start", ".text.memset"}
    # Even if another function of the same source is taken, and for the callers within it.
    both = link([caller("memset"), OTHER, own])
    assert both.read(both.symbols["memset"], 4) == own.section(".text.memset").data
    assert "memcpy" in both.symbols and both.stack_sizes == {"memcpy": 8}


OTHER = assemble('.section .text.other, "ax"\n.globl other\nother: bri memcpy\n')


def test_an_external_address_wins() -> None:
    image = link([caller("memcpy")], externals={"memcpy": 0x50000})
    assert section_names(image) == {".text.start"} and image.symbols["memcpy"] == 0x50000


def test_a_weak_reference_takes_nothing() -> None:
    item = assemble(".weak memcpy\nstart: setzi $m0, memcpy\n")
    assert section_names(link([item])) == {".text"}


def test_what_does_less_than_its_name_says_is_told() -> None:
    assert link([caller("memset")]).warnings == ()
    (warning,) = link([caller("puts"), OTHER]).warnings
    assert "print nothing" in warning


def test_what_nobody_defines_stays_undefined() -> None:
    with pytest.raises(LinkError, match="undefined: sin "):
        link([caller("sin")])

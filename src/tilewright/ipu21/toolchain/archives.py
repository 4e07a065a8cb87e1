"""`ar` archives of objects: read whole, and taken from as far as something is undefined."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ...errors import ObjectError
from .elf_format import ET_REL
from .gp import extract_object, is_gp
from .objects import ObjectFile

MAGIC = b"!<arch>\n"
THIN_MAGIC = b"!<thin>\n"
_HEADER_BYTES = 60
_END = b"`\n"
_INDEXES = ("/", "/SYM64/", "__.SYMDEF", "__.SYMDEF SORTED")
_LONG_NAMES = "//"
_BSD_LONG_NAME = "#1/"
_ELF = b"\x7fELF"
_ELF_TYPE = slice(16, 18)


def is_archive(data: bytes) -> bool:
    """True if the data begins like an archive of `ar`."""
    return data.startswith((MAGIC, THIN_MAGIC))


def read_archive(data: bytes, *, name: str = "<archive>") -> list[ObjectFile]:
    """The objects of an archive, in order; a `.gp` among them gives its object. Raises ObjectError."""
    if data.startswith(THIN_MAGIC):
        raise ObjectError("a thin archive holds names only", where=name, hint="make it with ar rcs")
    objects = []
    for member, content in _members(data, name):
        where = f"{name}({member})"
        if content.startswith(_ELF):
            if int.from_bytes(content[_ELF_TYPE], "little") != ET_REL:
                raise ObjectError(
                    "this member is linked already", where=where, hint="extract it and run it alone"
                )
            objects.append(ObjectFile.from_bytes(content, name=where))
        elif is_gp(content):
            objects.append(extract_object(content, name=where))
        else:
            raise ObjectError("this member is no object", where=where)
    return objects


def _members(data: bytes, name: str) -> list[tuple[str, bytes]]:
    """Names and bytes of the members that are no tables of the archive. Raises ObjectError."""
    found = []
    names = b""
    position = len(MAGIC)
    while position < len(data):
        header = data[position : position + _HEADER_BYTES]
        where = f"{name}+{position:#x}"
        if len(header) < _HEADER_BYTES or header[58:] != _END:
            raise ObjectError("there is no member header", where=where)
        size = _decimal(header[48:58], "size", where)
        start = position + _HEADER_BYTES
        content = data[start : start + size]
        if len(content) < size:
            raise ObjectError(f"a member of {size} bytes is cut off", where=where)
        position = start + size + size % 2
        written = header[:16].decode("latin-1").rstrip()
        if written == _LONG_NAMES:
            names = content
            continue
        if written in _INDEXES:
            continue
        if written.startswith(_BSD_LONG_NAME):
            length = _decimal(header[3:16], "name length", where)
            written, content = content[:length].decode("latin-1").rstrip("\0"), content[length:]
            if written in _INDEXES:
                continue
        elif written.startswith("/"):
            offset = _decimal(header[1:16], "name offset", where)
            written = names[offset:].split(b"/\n", 1)[0].decode("latin-1")
        found.append((written.removesuffix("/"), content))
    return found


def _decimal(field: bytes, what: str, where: str) -> int:
    text = field.decode("latin-1").strip()
    if not (text.isascii() and text.isdigit()):
        raise ObjectError(f"the {what} is {text!r}, which is no number", where=where)
    return int(text)


def members_needed(
    objects: Sequence[ObjectFile],
    libraries: Sequence[Sequence[ObjectFile]],
    roots: Sequence[str],
    externals: Collection[str],
) -> list[ObjectFile]:
    """The members of archives that define what `objects`, `roots` and members already taken leave undefined.

    Of several definitions of a name the first is taken, in the order of archives and members. A weak
    reference takes nothing.
    """
    providers: dict[str, ObjectFile] = {}
    for item in (member for library in libraries for member in library):
        for symbol in item.symbols:
            if symbol.binding != "local" and symbol.defined:
                providers.setdefault(symbol.name, item)
    return take_needed(objects, providers.get, roots, externals)


def take_needed(
    objects: Sequence[ObjectFile],
    provider: Callable[[str], ObjectFile | None],
    roots: Sequence[str],
    externals: Collection[str],
) -> list[ObjectFile]:
    """Objects that `provider` has for names `objects`, `roots` and those already taken leave undefined."""
    defined = set(externals)
    wanted: dict[str, None] = dict.fromkeys(roots)
    taken: dict[int, ObjectFile] = {}
    pending = list(objects)
    while True:
        for item in pending:
            for symbol in item.symbols:
                if symbol.binding == "local":
                    continue
                if symbol.defined:
                    defined.add(symbol.name)
                elif symbol.binding != "weak":
                    wanted[symbol.name] = None
        found = (provider(name) for name in wanted if name not in defined)
        pending = []
        for item in (item for item in found if item is not None):
            if id(item) not in taken:
                taken[id(item)] = item
                pending.append(item)
        if not pending:
            return list(taken.values())

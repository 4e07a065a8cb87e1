"""The outer shell of a package file, checked before a message reader sees one byte of it.

A file is one unpacked Cap'n Proto message: u32 segment count minus one, one u32 size in words per segment,
padding to eight bytes, then the segments (known, Cap'n Proto encoding specification).
"""

from __future__ import annotations

from tilewright.errors import PackageError

from .limits import MAX_FILE_BYTES, MAX_MESSAGE_SEGMENTS

_WORD = 8
ELF_MAGIC = b"\x7fELF"
OLD_IMAGE_MAGIC = b"IPUIMG1\0"


def check_framing(data: bytes, what: str = "package") -> int:
    """Words of the whole message. Raises PackageError unless the segment table accounts for every byte.

    `what` names the kind of file in messages.
    """
    length = len(data)
    if length > MAX_FILE_BYTES:
        raise PackageError(f"file of {length} bytes is over the limit of {MAX_FILE_BYTES}")
    if data.startswith(ELF_MAGIC):
        raise PackageError(f"not a {what} but an ELF file", hint="`tilewright inspect` shows it")
    if data.startswith(OLD_IMAGE_MAGIC):
        raise PackageError(f"not a {what} but an IPUIMG image, a form this version does not read")
    if length < 2 * _WORD:
        raise PackageError(f"not a {what}: {length} bytes are too few for a message")
    count = int.from_bytes(data[0:4], "little") + 1
    if count > MAX_MESSAGE_SEGMENTS:
        raise PackageError(f"not a {what}: its first word announces {count} message segments")
    header = -(-4 * (1 + count) // _WORD) * _WORD
    if length < header:
        raise PackageError(f"truncated in the segment table: {length} of {header} bytes")
    sizes = [int.from_bytes(data[4 * i : 4 * i + 4], "little") for i in range(1, count + 1)]
    expected = header + _WORD * sum(sizes)
    if length < expected:
        raise PackageError(f"truncated, or not a {what}: {length} of {expected} bytes")
    if length > expected:
        raise PackageError(f"{length - expected} bytes follow the end of the message at byte {expected}")
    if sizes[0] == 0:
        raise PackageError(f"not a {what}: its first message segment is empty")
    return length // _WORD

"""An outside C preprocessor, such as `gcc -E`, for sources that need more than the built-in one."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ....errors import UsageError
from ..command_words import command_words
from .headers import PREDEFINED, builtin_headers
from .preprocessor import MAXIMUM_BYTES, Preprocessed

TIMEOUT = 120
"""Seconds an outside preprocessor may take."""

_MARKED = re.compile(r'^# \d+ "[^"\n]*"(?: [1-4])*\r?$', re.MULTILINE)
_MARKER = re.compile(r'#\s+(\d+)\s+"((?:\\.|[^"\\])*)"')


def preprocess_with(
    command: str,
    path: Path,
    *,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, int | str] | None = None,
    headers: Path | None = None,
) -> Preprocessed:
    """Preprocess a file with `command` (`gcc -E`, `popc -E`, ...), which gets `-x assembler-with-cpp`.

    Args:
        headers: an empty folder into which our own headers are written, to be searched last.

    Raises:
        UsageError: the command is missing, fails, or gives too much.
    """
    words = command_words(command, "preprocessor")
    arguments = [*words, "-x", "assembler-with-cpp"]
    arguments += [f"-D{name}={value}" for name, value in {**PREDEFINED, **(defines or {})}.items()]
    arguments += [f"-I{folder}" for folder in include_dirs]
    if headers is not None:
        for name, text in builtin_headers().items():
            target = headers / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        arguments += ["-idirafter", str(headers)]
    arguments.append(str(path))
    try:
        done = subprocess.run(arguments, capture_output=True, timeout=TIMEOUT, check=False)
    except FileNotFoundError:
        raise UsageError(f"there is no command {words[0]}", hint="install it or name another") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"{words[0]} did not finish within {TIMEOUT} s", where=str(path)) from None
    if done.returncode:
        message = " ".join(done.stderr.decode(errors="replace").split())[:500]
        raise UsageError(f"{words[0]} failed: {message}", where=str(path))
    if len(done.stdout) > MAXIMUM_BYTES:
        raise UsageError(f"{words[0]} gives over {MAXIMUM_BYTES >> 20} MiB", where=str(path))
    return from_marked(done.stdout.decode(errors="replace"), str(path))


def is_marked(text: str) -> bool:
    """True if a text has line markers, as preprocessors leave them."""
    return _MARKED.search(text) is not None


def from_marked(text: str, filename: str) -> Preprocessed:
    """Text with line markers (`# 12 "file"`) as text with origins."""
    lines: list[str] = []
    origins: list[tuple[str, int]] = []
    name, number = filename, 1
    for line in text.split("\n"):
        match = _MARKER.match(line)
        if match:
            number, name = int(match.group(1)), match.group(2).replace('\\"', '"')
            continue
        lines.append(line)
        origins.append((name, number))
        number += 1
    return Preprocessed("\n".join(lines), tuple(origins))

"""An assembler outside this project, called as a command."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from ....errors import ObjectError, UsageError
from ....files import read_file
from ..command_words import command_words
from ..gp import extract_object, is_gp
from ..objects import ObjectFile

TIMEOUT = 300
"""Seconds for one call."""
OBJECT_LIMIT = 256 << 20


class Refused(Exception):
    """The assembler did not take a source; the text is what it said, on one line."""


class OutsideAssembler:
    """A command such as `popc --target ipu21 -c {input} -o {output}`.

    Without the two placeholders `-o OUTPUT INPUT` is appended. The output is an ELF object or a `.gp`
    archive.
    """

    def __init__(self, command: str) -> None:
        self.command = command
        self._words = command_words(command, "assembler")
        if not any("{input}" in word for word in self._words):
            self._words += ["-o", "{output}", "{input}"]
        elif not any("{output}" in word for word in self._words):
            raise UsageError("the assembler command has {input} but no {output}", where=command)

    def assemble(self, source: str) -> ObjectFile:
        """Assemble a text. Raises Refused; UsageError when the command cannot be run at all."""
        with tempfile.TemporaryDirectory(prefix="tilewright-probe-") as folder:
            path, output = Path(folder) / "probe.S", Path(folder) / "probe.o"
            path.write_text(source)
            places = {"{input}": str(path), "{output}": str(output)}
            words = [re.sub(r"\{(input|output)\}", lambda m: places[m.group()], word) for word in self._words]
            try:
                done = subprocess.run(words, capture_output=True, timeout=TIMEOUT, check=False, cwd=folder)
            except OSError as error:
                raise UsageError(f"cannot run {words[0]}: {error.strerror}", where="--assembler") from None
            except subprocess.TimeoutExpired:
                raise Refused(f"no answer within {TIMEOUT} s") from None
            if done.returncode or not output.exists():
                said = (done.stderr or done.stdout).decode(errors="replace").replace(folder, "")
                raise Refused(" ".join(said.split())[:300] or f"exit status {done.returncode}")
            data = read_file(output, limit=OBJECT_LIMIT)
        try:
            return extract_object(data) if is_gp(data) else ObjectFile.from_bytes(data, name="probe.o")
        except ObjectError as error:
            raise Refused(f"its object cannot be read: {error}") from None

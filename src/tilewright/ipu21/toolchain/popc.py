"""A bridge to the user's own `popc`, the vendor's compiler; its results are cached by content.

The key of a result is a digest of everything it depends on: the preprocessed text, the flags, the target, and
the compiler itself (bytes of its file and what it says of its version). A compiler that cannot preprocess is
called every time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import MissingDependencyError, UsageError
from ...files import read_file, write_whole
from ...user_cache import cache_area
from .command_words import command_words
from .gp import choose_target, is_gp, read_gp
from .objects import ObjectFile

TIMEOUT = 1800
"""Seconds for one call of the compiler."""
OUTPUT_LIMIT = 256 << 20
_FORMAT = "tilewright popc cache 1"


@dataclass(frozen=True)
class Compiled:
    """What the compiler made of a source.

    Attributes:
        archive: the bytes it wrote, a `.gp` archive or an ELF object.
        metadata: how it was made: source, flags, target, digests, the compiler's path and version, and what
            `pop-objdump metadata` says of the archive if that tool is there.
        key: digest of all inputs, empty when it could not be had.
        cached: the result came from the cache.
    """

    archive: bytes
    metadata: dict[str, Any]
    key: str
    cached: bool

    def elf(self, name: str) -> bytes:
        """The ELF object for this machine. Raises ObjectError."""
        if not is_gp(self.archive):
            return self.archive
        return choose_target(read_gp(self.archive, name=name), name=name).elf

    def object(self, name: str) -> ObjectFile:
        """The object for this machine. Raises ObjectError."""
        return ObjectFile.from_bytes(self.elf(name), name=name)


def cache_folder() -> Path:
    """Where results are kept."""
    return cache_area("popc")


class Popc:
    """A compiler that was found."""

    def __init__(self, command: str | None = None) -> None:
        """`command` defaults to TILEWRIGHT_POPC or `popc`. Raises MissingDependencyError without it."""
        self.words = command_words(command or os.environ.get("TILEWRIGHT_POPC") or "popc", "compiler")
        found = shutil.which(self.words[0])
        if found is None:
            raise MissingDependencyError(
                f"popc is needed to compile C++ and is not installed ({' '.join(self.words)})",
                hint="activate the vendor's SDK, or name the compiler with --popc or TILEWRIGHT_POPC",
            )
        self.path = Path(found).resolve()

    def identity(self) -> dict[str, str]:
        """The compiler's path, digest and version text."""
        done = self._run(["--version"])
        said = (done.stdout or done.stderr).decode(errors="replace").strip()
        digest = hashlib.sha256(read_file(self.path, limit=OUTPUT_LIMIT)).hexdigest()
        return {"path": str(self.path), "sha256": digest, "version": said[:1000]}

    def compile(
        self,
        source: Path,
        *,
        flags: Sequence[str] = (),
        target: str = "ipu21",
        cache: Path | None = None,
    ) -> Compiled:
        """Compile a C++ or assembly source; `-O2` is added when no flag chooses a level.

        Args:
            flags: passed on as they are.
            target: what `--target` names; may list several.
            cache: folder of results; None for no cache.

        Raises:
            UsageError: the source cannot be read, or the compiler refuses it; then with its first words.
        """
        read_file(source, limit=OUTPUT_LIMIT)
        chosen = list(flags)
        if not any(flag.startswith("-O") for flag in chosen):
            chosen.insert(0, "-O2")
        arguments = [f"--target={target}", *chosen]
        identity = self.identity()
        with tempfile.TemporaryDirectory(prefix="tilewright-popc-") as folder:
            key = self._key(source, arguments, identity, Path(folder) / "preprocessed")
            if cache is not None and key:
                kept = _kept(cache / key)
                if kept is not None:
                    return Compiled(kept[0], kept[1], key, True)
            output = Path(folder) / "output.gp"
            done = self._run([*arguments, str(source), "-o", str(output)])
            if done.returncode or not output.exists():
                said = (done.stderr or done.stdout).decode(errors="replace").strip()[:4000]
                why = f":\n{said}" if said else f", with exit status {done.returncode} and no word"
                raise UsageError(f"{self.path.name} refuses it{why}", where=str(source))
            archive = read_file(output, limit=OUTPUT_LIMIT)
            metadata = {
                "source": str(source),
                "source_sha256": hashlib.sha256(source.read_bytes()).hexdigest(),
                "flags": chosen,
                "target": target,
                "compiler": identity,
                "key": key,
                "archive_sha256": hashlib.sha256(archive).hexdigest(),
                "codelets": self._described(output, target),
            }
        if cache is not None and key:
            _keep(cache / key, archive, metadata)
        return Compiled(archive, metadata, key, False)

    def _key(self, source: Path, arguments: list[str], identity: dict[str, str], output: Path) -> str:
        """Digest of all inputs, or empty when the compiler does not preprocess."""
        done = self._run([*arguments, "-E", str(source), "-o", str(output)])
        text = output.read_bytes() if output.exists() else done.stdout
        if done.returncode or not text:
            return ""
        digest = hashlib.sha256()
        for part in (_FORMAT, json.dumps([arguments, identity], sort_keys=True)):
            digest.update(part.encode() + b"\0")
        digest.update(text)
        return digest.hexdigest()

    def _described(self, archive: Path, target: str) -> Any:
        """The compiler's description of codelets, or None if there is no tool for it (its schema is open)."""
        tool = shutil.which("pop-objdump", path=f"{self.path.parent}{os.pathsep}{os.environ.get('PATH', '')}")
        if tool is None:
            return None
        command = [tool, "metadata", target.split(",")[0], str(archive)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=False)
            return json.loads(done.stdout) if done.returncode == 0 else None
        except (OSError, subprocess.TimeoutExpired, ValueError):
            return None

    def _run(self, arguments: list[str]) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                [str(self.path), *self.words[1:], *arguments],
                capture_output=True,
                timeout=TIMEOUT,
                check=False,
            )
        except OSError as error:
            raise UsageError(f"cannot run {self.path}: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise UsageError(f"{self.path.name} did not finish within {TIMEOUT} s") from None


def _kept(folder: Path) -> tuple[bytes, dict[str, Any]] | None:
    """A whole and undamaged result, or None."""
    try:
        archive = (folder / "archive.gp").read_bytes()
        metadata = json.loads((folder / "metadata.json").read_text())
        if metadata["archive_sha256"] != hashlib.sha256(archive).hexdigest():
            return None
        return archive, metadata
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(folder: Path, archive: bytes, metadata: dict[str, Any]) -> None:
    """Store a result; a cache that cannot be written is no fault."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "archive.gp", archive)
        write_whole(folder / "metadata.json", (json.dumps(metadata, indent=1) + "\n").encode())
    except (OSError, UsageError):
        return

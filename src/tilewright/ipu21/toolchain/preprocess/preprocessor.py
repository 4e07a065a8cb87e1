"""The built-in C preprocessor: macros, conditions and includes of assembly sources."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ....errors import UsageError
from ....files import read_file
from ..diagnostics import MAXIMUM_FAULTS, AssemblyFaults, Diagnostic, did_you_mean
from .condition import holds
from .expansion import Macro, expand, needs_more, parse_define
from .faults import PreprocessorFault
from .headers import PREDEFINED, builtin_headers
from .tokens import LogicalLine, Token, logical_lines, spell, tokenise

MAXIMUM_DEPTH = 64
"""Files that may be open inside one another."""
MAXIMUM_BYTES = 64 << 20
"""Characters the result may have; stops sources that include themselves many times over."""
SOURCE_LIMIT = 16 << 20
"""Bytes of an included file."""

_DIRECTIVE = re.compile(r"\s*#\s*([A-Za-z_]+)\b(.*)", re.DOTALL)
_LINE = re.compile(r'\s*(\d{1,9})\s*(?:"([^"]+)")?\s*$')
_INCLUDE = re.compile(r'\s*(?:"([^"]+)"|<([^>]+)>)\s*$')
_CONDITION = re.compile(r"$|['(!~\-+\d]|defined\b|[A-Za-z_]\w*\s*[<>=!&|+*/%(-]|[A-Z_]\w*\s*$")
_WORDS = frozenset(
    (
        *("define", "undef", "include", "include_next", "if", "ifdef", "ifndef", "else", "endif"),
        *("elif", "elifdef", "elifndef", "error", "warning", "line", "pragma", "ident"),
    )
)
_NEEDED = re.compile(
    r"^[ \t]*#[ \t]*(?:include[ \t]*[<\"]|define[ \t]+\w|undef[ \t]+\w|(?:ifdef|ifndef)[ \t]+\w+[ \t]*(?:$|/)"
    r"|if[ \t]+[(!\d]|if[ \t]+defined|elif[ \t]|else\b|endif\b)"
    r"|^#(?:error|warning)[ \t]"
    r"|\b__(?:LINE|FILE|COUNTER|ASSEMBLER|IPU|IPU_ARCH_VERSION)__\b",
    re.MULTILINE,
)

_PLACES = ("__LINE__", "__FILE__")
"""Macros that mean something else on every line."""

Reader = Callable[[Path], bytes]


def needs_preprocessing(source: str) -> bool:
    """True if a line looks like a preprocessor directive rather than a `#` comment, or if a macro that is
    always there is used.
    """
    return _NEEDED.search(source) is not None


@dataclass(frozen=True, slots=True)
class Preprocessed:
    """The text for the assembler.

    Attributes:
        text: one line per logical line that counted.
        origins: for each line of the text its file and line (from 1).
        files: every file that was read, in order, with its bytes; headers of our own are not among them.
        warnings: what `#warning` lines told, with their places.
    """

    text: str
    origins: tuple[tuple[str, int], ...]
    files: tuple[tuple[str, bytes], ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class _Level:
    opened: LogicalLine
    active: bool
    taken: bool
    seen_else: bool = False


@dataclass(slots=True)
class _State:
    macros: dict[str, Macro]
    include_dirs: Sequence[Path]
    read: Reader
    lines: list[str] = field(default_factory=list)
    origins: list[tuple[str, int]] = field(default_factory=list)
    faults: list[Diagnostic] = field(default_factory=list)
    files: list[tuple[str, bytes]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    once: set[str] = field(default_factory=set)
    characters: int = 0


class _Stopped(Exception):
    pass


def _read(path: Path) -> bytes:
    return read_file(path, limit=SOURCE_LIMIT)


def preprocess(
    source: str,
    *,
    filename: str = "<string>",
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, int | str] | None = None,
    read: Reader = _read,
) -> Preprocessed:
    """Run the C preprocessor's part of a source.

    Handles `#define` (object- and function-like, `#`, `##`, `...`), `#undef`, `#include`, all conditions,
    `#error`, `#pragma once` and line continuation. A `#` line that is no directive is a comment, as in the
    vendor's sources. `$` is no part of a name, so that `$mscratch` becomes `$m0` with `#define mscratch m0`.

    Args:
        include_dirs: searched after the including file's folder; then come headers of our own.
        defines: macros defined beforehand, besides those the vendor's compiler defines for ipu21.
        read: gives the bytes of a file; raises UsageError.

    Raises:
        AssemblyFaults: every fault, at the line of the file it is in.
    """
    macros = {name: parse_define(f"{name} {value}") for name, value in PREDEFINED.items()}
    macros["__COUNTER__"] = Macro("__COUNTER__", None, (), counter=itertools.count())
    for name, value in (defines or {}).items():
        macros[name] = parse_define(f"{name} {value}")
    state = _State(macros, [Path(item) for item in include_dirs], read)
    more = False
    try:
        _File(state, filename, source, (filename,)).run()
    except _Stopped:
        more = len(state.faults) >= MAXIMUM_FAULTS
    if state.faults:
        raise AssemblyFaults(filename, state.faults, more=more)
    return Preprocessed(
        "".join(f"{line}\n" for line in state.lines),
        tuple(state.origins),
        tuple(state.files),
        tuple(state.warnings),
    )


class _File:
    """One open file."""

    def __init__(self, state: _State, name: str, source: str, chain: tuple[str, ...]) -> None:
        self._state = state
        self._name = name
        self._source = source.split("\n")
        self._lines = logical_lines(source)
        self._chain = chain
        self._levels: list[_Level] = []
        self._stated: tuple[str, int] = (name, 0)
        """Name that lines go under, and what is added to their numbers: `#line` changes both."""

    @property
    def _active(self) -> bool:
        return not self._levels or self._levels[-1].active

    def run(self) -> None:
        index = 0
        while index < len(self._lines):
            line = self._lines[index]
            index += 1
            match = _DIRECTIVE.match(line.text)
            try:
                if match and match.group(1) in _WORDS and self._is_directive(match):
                    self._directive(match.group(1), match.group(2), line)
                elif line.text.lstrip().startswith("#"):
                    self._emit("", line)
                elif self._active:
                    index = self._text(line, index)
                else:
                    self._emit("", line)
            except PreprocessorFault as fault:
                self._report(fault, line)
        for level in self._levels:
            self._report(
                PreprocessorFault("this condition is never closed", hint="add `#endif`"), level.opened
            )

    @staticmethod
    def _is_directive(match: re.Match[str]) -> bool:
        """Whether a line that starts like a directive is one, and not a comment in words."""
        word, rest = match.group(1), match.group(2).strip()
        if word in ("include", "include_next"):
            return rest[:1] in ('"', "<") or bool(re.fullmatch(r"[A-Z_]\w*", rest))
        if word in ("define", "undef", "ifdef", "ifndef", "elifdef", "elifndef"):
            return bool(re.match(r"[A-Za-z_]\w*", rest)) and (
                word == "define" or bool(re.fullmatch(r"[A-Za-z_]\w*", rest))
            )
        if word == "if":
            return bool(_CONDITION.match(rest)) or (match.group(0)[:3] == "#if" and rest.isidentifier())
        if word in ("else", "endif"):
            return not rest
        if word == "line":
            return rest[:1].isdigit() or bool(re.fullmatch(r"[A-Z_]\w*", rest))
        return True

    def _text(self, line: LogicalLine, index: int) -> int:
        """A line of assembly; returns the index of the next line to read."""
        tokens = _without_comment(tokenise(line.text))
        macros = self._state.macros
        names = [token.text for token in tokens if token.kind == "name"]
        if not any(name in macros or name in _PLACES for name in names):
            self._emit(line.text, line)
            return index
        self._place(line)
        last = index
        while needs_more(tokens, macros) and last < len(self._lines) and last - index < 1000:
            tokens += [
                token._replace(blank=True) for token in _without_comment(tokenise(self._lines[last].text))
            ]
            last += 1
        indent = line.text[: len(line.text) - len(line.text.lstrip())]
        self._emit(indent + spell(expand(tokens, macros)).lstrip(), line)
        for skipped in self._lines[index:last]:
            self._emit("", skipped)
        return last

    def _stated_place(self, line: LogicalLine) -> tuple[str, int]:
        """File and number that a line goes under."""
        name, change = self._stated
        return name, line.number + change

    def _place(self, line: LogicalLine) -> None:
        """Let `__LINE__` and `__FILE__` stand for this line."""
        name, number = self._stated_place(line)
        tokens = Token("number", str(number)), Token("string", f'"{name}"')
        for macro, token in zip(_PLACES, tokens, strict=True):
            self._state.macros[macro] = Macro(macro, None, (token,))

    def _directive(self, word: str, rest: str, line: LogicalLine) -> None:
        self._emit("", line)
        self._place(line)
        rest = rest.strip()
        if word in ("if", "ifdef", "ifndef"):
            self._open(word, rest, line)
        elif word in ("elif", "elifdef", "elifndef", "else", "endif"):
            self._branch(word, rest)
        elif not self._active:
            return
        elif word == "define":
            macro = parse_define(rest)
            self._state.macros[macro.name] = macro
        elif word == "undef":
            self._state.macros.pop(rest.split()[0] if rest else "", None)
        elif word in ("include", "include_next"):
            self._include(rest, following=word == "include_next")
        elif word == "error":
            raise PreprocessorFault(f"#error {rest}")
        elif word == "pragma" and rest == "once":
            self._state.once.add(self._name)
        elif word == "warning":
            name, number = self._stated_place(line)
            self._state.warnings.append(f"{name}:{number}: {rest}")
        elif word == "line":
            self._restate(self._expanded(rest), line)

    def _expanded(self, text: str) -> str:
        return spell(expand(tokenise(text), self._state.macros))

    def _restate(self, rest: str, line: LogicalLine) -> None:
        """`#line number "file"`: what the next line is to be called."""
        match = _LINE.match(rest)
        if match is None:
            raise PreprocessorFault("expected a line number and maybe a file name after #line")
        self._stated = (match.group(2) or self._stated[0], int(match.group(1)) - line.last - 1)

    def _open(self, word: str, rest: str, line: LogicalLine) -> None:
        if not self._active:
            self._levels.append(_Level(line, False, True))
            return
        try:
            if word == "if":
                active = self._holds(rest)
            else:
                active = (rest.split()[0] in self._state.macros) == (word == "ifdef")
        except PreprocessorFault:
            # Keep `#endif` paired; no branch counts.
            self._levels.append(_Level(line, False, True))
            raise
        self._levels.append(_Level(line, active, active))

    def _branch(self, word: str, rest: str) -> None:
        if not self._levels:
            raise PreprocessorFault(f"#{word} without #if")
        level = self._levels[-1]
        if word == "endif":
            self._levels.pop()
            return
        if level.seen_else:
            raise PreprocessorFault(f"#{word} after #else")
        if word == "else":
            level.active, level.taken, level.seen_else = not level.taken, True, True
        elif level.taken:
            level.active = False
        elif word == "elif":
            level.active = level.taken = self._holds(rest)
        else:
            level.active = level.taken = (rest in self._state.macros) == (word == "elifdef")

    def _holds(self, condition: str) -> bool:
        return holds(
            condition, self._state.macros, lambda name, local: self._path(name, local=local) is not None
        )

    def _include(self, rest: str, *, following: bool = False) -> None:
        match = _INCLUDE.match(rest)
        if match is None:
            match = _INCLUDE.match(self._expanded(rest))
        if match is None:
            raise PreprocessorFault('expected "file" or <file> after #include')
        if len(self._chain) >= MAXIMUM_DEPTH:
            raise PreprocessorFault(
                f"files are included over {MAXIMUM_DEPTH} deep",
                hint=f"does {self._name} include itself without a guard?",
            )
        name, source = self._found(
            match.group(1) or match.group(2), local=bool(match.group(1)), following=following
        )
        if name not in self._state.once:
            _File(self._state, name, source, (*self._chain, name)).run()

    def _folders(self, *, local: bool, following: bool = False) -> list[Path]:
        """Where an included file is looked for; `following` means only behind the folder of this file."""
        home = Path(self._name).parent
        folders = list(self._state.include_dirs)
        if following:
            return folders[folders.index(home) + 1 :] if home in folders else folders
        return [home, *folders] if local else folders

    def _path(self, wanted: str, *, local: bool, following: bool = False) -> Path | str | None:
        """The file that an include means, the name of one of our own headers, or None."""
        for folder in self._folders(local=local, following=following):
            if (folder / wanted).is_file():
                return folder / wanted
        plain = str(PurePosixPath(wanted))
        return plain if plain in builtin_headers() else None

    def _found(self, wanted: str, *, local: bool, following: bool) -> tuple[str, str]:
        """Name and text of an included file. Raises PreprocessorFault."""
        path = self._path(wanted, local=local, following=following)
        if isinstance(path, Path):
            try:
                data = self._state.read(path)
                self._state.files.append((str(path), data))
                return str(path), data.decode()
            except (UsageError, UnicodeDecodeError) as error:
                raise PreprocessorFault(f"cannot read {path}: {error}") from None
        if path is not None:
            return f"<{path}>", builtin_headers()[path]
        searched = ", ".join(str(folder) for folder in self._folders(local=local, following=following))
        raise PreprocessorFault(
            f"there is no file {wanted}" + (f" in {searched}" if searched else ""),
            hint=did_you_mean(wanted, builtin_headers()) or "give its folder with -I",
        )

    def _emit(self, text: str, line: LogicalLine) -> None:
        state = self._state
        state.characters += len(text) + 1
        if state.characters > MAXIMUM_BYTES:
            self._report(
                PreprocessorFault(f"the source expands to over {MAXIMUM_BYTES >> 20} million characters"),
                line,
            )
            raise _Stopped
        # A macro may bring line ends of its own in strings only; a statement stays on one line.
        state.lines.append(text.replace("\n", " "))
        state.origins.append(self._stated_place(line))

    def _report(self, fault: PreprocessorFault, line: LogicalLine) -> None:
        shown = self._source[line.number - 1].rstrip("\r") if line.number <= len(self._source) else ""
        column = len(shown) - len(shown.lstrip()) + 1
        notes = tuple(f"included by {name}" for name in reversed(self._chain[:-1]))
        self._state.faults.append(
            Diagnostic(self._name, line.number, column, fault.message, shown, fault.hint, notes)
        )
        if len(self._state.faults) >= MAXIMUM_FAULTS:
            raise _Stopped


def _without_comment(tokens: list[Token]) -> list[Token]:
    """Tokens before a `#`, which starts a comment inside a line of assembly."""
    for index, token in enumerate(tokens):
        if token.text == "#":
            return tokens[:index]
    return tokens

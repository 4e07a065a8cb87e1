"""The assembler: from source text to a relocatable object."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ...errors import AssemblyError
from .conditions import Conditions
from .control import BRANCHES, COLLECTORS, CONDITIONS, call_macro, run_control
from .diagnostics import AssemblyFaults, SourceFault, did_you_mean
from .directives import Arguments, run_directive
from .emission import CodeFixup, DataFixup, Emitter, NumberFixup, RelocationRequest, RepeatBody
from .expressions import Address, ExpressionParser, Value, evaluate
from .instructions import Instruction, load_constant, read_instruction
from .layout import MAXIMUM_READS, Layout
from .lexer import Token, tokenise
from .macros import MAXIMUM_NESTING, MAXIMUM_STATEMENTS, Evaluate, Macro
from .matching import all_mnemonics, readings
from .object_builder import build_object
from .objects import ObjectFile
from .operands import parse_operands
from .preprocess import Preprocessed, from_marked, is_marked, needs_preprocessing, preprocess
from .scope import Scope
from .section_directives import default_flags
from .settling import check_repeat, settle_code, settle_data, settle_number, settle_request
from .sources import Sources, TooManyFaults
from .statements import Statement, cut_statements
from .symbols import MAXIMUM_SECTION_BYTES, Section, Symbol, SymbolTable

CONTROL_WORDS = frozenset(
    (*CONDITIONS, *BRANCHES, *COLLECTORS, ".endm", ".endmacro", ".endr", ".exitm", ".purgem")
)
_Settled = TypeVar("_Settled", CodeFixup, DataFixup, NumberFixup, RelocationRequest, RepeatBody)
_HEAD = re.compile(r"\s*([A-Za-z_.$][\w.$]*|\d+)\s*(:|=(?!=))?")


@dataclass(slots=True)
class _Frame:
    """Statements still to be read: the file, or an expansion."""

    statements: list[Statement]
    macro: bool
    conditions: int
    index: int = 0


@dataclass(slots=True)
class _Bundle:
    """The bundle whose `{` was read; `faulty` once one of its instructions was refused."""

    statement: Statement
    instructions: list[Instruction] = field(default_factory=list)
    faulty: bool = False


class Assembler:
    """State of one assembly. Use `assemble`."""

    def __init__(self, source: str, sources: Sources, defines: Mapping[str, int], layout: Layout) -> None:
        self.sources = sources
        self.layout = layout
        self.symbols = SymbolTable(sources.where)
        self.sections: dict[str, Section] = {}
        self.section = self.named_section(".text")
        self.previous: tuple[Section, int] | None = None
        self.section_stack: list[tuple[tuple[Section, int], tuple[Section, int] | None]] = []
        self.emitter = Emitter(sources.where, self.layout)
        self.conditions = Conditions()
        self.files: dict[int, str] = {}
        self.macros: dict[str, Macro] = {}
        self.macro_calls = 0
        self.calls_of: dict[str, int] = {}
        self.alternate: Evaluate | None = None
        self._locals = 0
        self.sizes: list[tuple[Symbol, Statement, int]] = []
        self.scope = Scope(self)
        self._bundle: _Bundle | None = None
        self._repeated: dict[str, Instruction] = {}
        self._statements_left = MAXIMUM_STATEMENTS
        statements, self._cut_faults = cut_statements(source)
        self._frames = [_Frame(statements, False, 0)]
        start = Statement("", 1, 0)
        for name, value in defines.items():
            self.symbols.assign(name, value, start)

    # ---- what directives use

    def named_section(self, name: str) -> Section:
        section = self.sections.get(name)
        if section is None:
            flags, kind = default_flags(name)
            section = self.add_section(name, Section(name, kind, flags))
        return section

    def add_section(self, key: str, section: Section) -> Section:
        """Remember a section that was not there; `key` tells it from others of its name."""
        section.starts = dict(self.layout.starts.get(key, {}))
        self.sections[key] = section
        return section

    @property
    def place(self) -> tuple[Section, int]:
        """The section and the number of its subsection."""
        return self.section, self.section.number

    def include(self, name: str, source: str, statement: Statement) -> None:
        """Read the statements of another file next. Raises SourceFault when files are nested too deeply."""
        statements, faults = cut_statements(source, line=self.sources.add(name, source))
        self.sources.report_cuts(faults, None)
        self.push(statements, statement, macro=False)

    def move_to(self, target: Value, fill: int, place: int) -> None:
        """Go on at an offset of the current section, or an address in it. Raises SourceFault."""
        value = evaluate(target)
        if isinstance(value, Address):
            if value.symbol.section is not self.section:
                raise SourceFault("the place must be in the current section", place)
            value = value.symbol.offset + value.addend
        count = value - self.section.offset
        if count < 0:
            raise SourceFault(f"the place is {-count} bytes back", place, hint="bytes cannot be taken back")
        if count > MAXIMUM_SECTION_BYTES:
            raise SourceFault(
                f"section {self.section.name} grows beyond {MAXIMUM_SECTION_BYTES} bytes", place
            )
        self.section.append(bytes([fill & 0xFF]) * count)

    def stop_reading(self) -> None:
        """Nothing of the source is read any more; conditions that are open are not missed."""
        self.conditions.cut_to(0)
        self._frames.clear()

    def evaluated(self, text: str, start: int) -> tuple[str, int]:
        """The number an expression stands for, in decimal, and the position behind it: `%` of `.altmacro`.

        Raises SourceFault.
        """
        parser = ExpressionParser(tokenise(text, start), 0, self.scope)
        value = evaluate(parser.parse())
        if not isinstance(value, int):
            raise SourceFault("the value is known only after linking", start)
        return str(value), parser.tokens[parser.index].offset

    def fresh_local(self) -> str:
        """A name for `LOCAL` that the source cannot write."""
        self._locals += 1
        return f".LL{self._locals:04x}$"

    def enter(self, section: Section, number: int = 0) -> None:
        """Go on in a section, at the end of one of its subsections."""
        self.previous = self.place
        self.section = section
        section.select(number)

    def assign(self, name: str, value: Value, statement: Statement) -> None:
        if isinstance(value, Address) and value.symbol.section is None and value.symbol.name == name:
            raise SourceFault(f"{name} is defined by itself")
        self.symbols.assign(name, value, statement)

    def push(self, statements: list[Statement], statement: Statement, *, macro: bool) -> None:
        """Read `statements` next."""
        if len(self._frames) > MAXIMUM_NESTING:
            raise SourceFault(
                f"expansions are nested over {MAXIMUM_NESTING} deep", hint="does a macro call itself?"
            )
        self._frames.append(_Frame(statements, macro, self.conditions.depth))

    def leave_macro(self) -> None:
        """Drop the rest of the innermost macro expansion."""
        if not any(frame.macro for frame in self._frames):
            raise SourceFault("`.exitm` outside a macro")
        while True:
            frame = self._frames.pop()
            if frame.macro:
                self.conditions.cut_to(frame.conditions)
                return

    def collect(
        self, statement: Statement, word: str, openers: frozenset[str], closers: frozenset[str]
    ) -> list[Statement]:
        """The statements up to the matching end, which is consumed. Raises SourceFault when it is missing."""
        frame = self._frames[-1]
        depth = 1
        for index in range(frame.index, len(frame.statements)):
            match = _HEAD.match(frame.statements[index].text)
            head = match.group(1).lower() if match else ""
            if head in openers:
                depth += 1
            elif head in closers:
                depth -= 1
                if depth == 0:
                    body = frame.statements[frame.index : index]
                    frame.index = index + 1
                    return body
        frame.index = len(frame.statements)
        raise SourceFault(f"`{word}` is never closed", hint=f"add `{min(closers)}`")

    # ---- the work

    def run(self) -> ObjectFile:
        """Assemble everything. Raises AssemblyFaults with every fault."""
        more = False
        item: ObjectFile | None = None
        try:
            self.sources.report_cuts(self._cut_faults, None)
            self._read()
            self._join()
            self._settle()
            item = build_object(self)
        except TooManyFaults:
            more = True
        faults = self.sources.faults()
        if faults:
            raise AssemblyFaults(self.sources.filename, faults, more=more)
        assert item is not None
        return item

    def _read(self) -> None:
        frames = self._frames
        while frames:
            frame = frames[-1]
            if frame.index >= len(frame.statements):
                frames.pop()
                for opener in self.conditions.cut_to(frame.conditions):
                    self.sources.report(
                        SourceFault("this condition is never closed", hint="add `.endif`"), opener
                    )
                continue
            statement = frame.statements[frame.index]
            frame.index += 1
            self._statements_left -= 1
            try:
                if self._statements_left < 0:
                    frames.clear()
                    raise SourceFault(f"the source expands to over {MAXIMUM_STATEMENTS} statements")
                self._statement(statement)
            except SourceFault as fault:
                self.sources.report(fault, statement)

    def _statement(self, statement: Statement) -> None:
        text = statement.text
        position = 0
        active = self.conditions.active
        while True:
            match = _HEAD.match(text, position)
            if match is None:
                break
            word, mark = match.groups()
            if mark != ":":
                break
            if active:
                self._label(word, match.start(1), statement)
            position = match.end()
            if position >= len(text):
                return
        if match is None:
            rest = text[position:].lstrip()
            if rest and active:
                if rest in ("{", "}"):
                    self._brace(rest, statement)
                else:
                    raise SourceFault(f"unexpected {rest[0]!r}", len(text) - len(rest))
            return
        start = match.end()
        if word[0] == "." and mark is None:
            # Directives are known in any case of letters (GNU).
            if word.lower() in CONTROL_WORDS:
                run_control(self, word.lower(), text, match.end(1), statement)
                return
            if active and word not in self.macros:
                run_directive(self, word.lower(), text, start, statement)
                return
        if not active:
            return
        if mark == "=":
            arguments = Arguments(self, text, start)
            value = arguments.expression()
            arguments.finish()
            if word == ".":
                self.move_to(value, 0, start)
            else:
                self.assign(word, value, statement)
            return
        macro = self.macros.get(word)
        if macro is not None:
            call_macro(self, macro, text, start, statement)
            return
        self._instruction(word, match.start(1), start, statement)

    def _label(self, word: str, offset: int, statement: Statement) -> None:
        try:
            if word.isdigit():
                self.symbols.define_local(word, self.section, statement)
            elif word.startswith("$"):
                raise SourceFault(f"{word} is no name for a label")
            else:
                self.symbols.define_label(word, self.section, statement)
        except SourceFault as fault:
            # The rest of the line is still read.
            self.sources.report(SourceFault(fault.message, offset, hint=fault.hint), statement)

    def _instruction(self, word: str, offset: int, start: int, statement: Statement) -> None:
        # The same text means the same words unless a name of the source is in it.
        key = statement.text[offset:]
        repeated = self._repeated.get(key)
        lookups = self.scope.lookups
        try:
            tokens = [] if repeated is not None else tokenise(statement.text, start)
            if repeated is not None:
                instructions = [repeated.again(offset, statement)]
            elif word == "ldconst":
                operands = parse_operands(tokens, self._after_comma(tokens), self.scope)
                instructions = load_constant(operands, offset, statement)
            else:
                instructions = [self._parse(word, tokens, offset, statement)]
                if self.scope.lookups == lookups:
                    self._repeated[key] = instructions[0]
        except SourceFault:
            if self._bundle is not None:
                self._bundle.faulty = True
            else:
                self.emitter.stand_in(self.section, 4, statement)
            raise
        if self._bundle is not None:
            self._bundle.instructions += instructions
            return
        for instruction in instructions:
            self.emitter.emit_single(self.section, instruction, statement)

    def _parse(self, word: str, tokens: list[Token], offset: int, statement: Statement) -> Instruction:
        if readings(word) is None:
            from ..isa.forms import UNENCODABLE

            if word in UNENCODABLE:
                raise SourceFault(f"`{word}` has no public encoding and cannot be assembled", offset)
            names = [*all_mnemonics(), *self.macros]
            raise SourceFault(
                f"there is no instruction or macro `{word}`", offset, hint=did_you_mean(word, names)
            )
        operands = parse_operands(tokens, self._after_comma(tokens), self.scope)
        return read_instruction(word, operands, offset, statement)

    @staticmethod
    def _after_comma(tokens: list[Token]) -> int:
        # A mnemonic may be followed by a comma (known: published kernels do it).
        return 1 if tokens[0].text == "," else 0

    def _brace(self, brace: str, statement: Statement) -> None:
        """Open or close a bundle."""
        opened = self._bundle
        if brace == "{":
            self._bundle = _Bundle(statement)
            if opened is not None:
                raise SourceFault("this bundle is not closed", hint="add `}`", statement=opened.statement)
            return
        self._bundle = None
        if opened is None:
            raise SourceFault("`}` without `{`")
        instructions = opened.instructions
        if len(instructions) == 2 and not opened.faulty:
            self.emitter.emit_bundle(self.section, instructions[0], instructions[1], opened.statement)
            return
        self.emitter.stand_in(self.section, 8, opened.statement)
        if not opened.faulty:
            raise SourceFault(
                f"a bundle has two instructions, this one has {len(instructions)}",
                hint="write { main ; aux }, with nop or fnop for an empty half",
                statement=opened.statement,
            )

    def _join(self) -> None:
        """Every section becomes one piece; remember where its subsections turned out to begin."""
        for key, section in self.sections.items():
            found = section.join()
            if found:
                self.layout.starts[key] = found

    def _settle(self) -> None:
        """Everything is placed: patch what was open and check repeat bodies."""
        emitter = self.emitter
        if self._bundle is not None:
            self.sources.report(
                SourceFault("this bundle is not closed", hint="add `}`"), self._bundle.statement
            )
        self._each(emitter.code_fixups, settle_code)
        self._each(emitter.data_fixups, settle_data)
        self._each(emitter.number_fixups, settle_number)
        self._each(emitter.requests, settle_request)
        self._each(emitter.repeats, check_repeat)

    def _each(self, items: Sequence[_Settled], settle: Callable[[Emitter, _Settled], None]) -> None:
        """Settle what is of one kind; each fault is told of the statement it came from."""
        for item in items:
            try:
                settle(self.emitter, item)
            except SourceFault as fault:
                self.sources.report(fault, item.statement)


def assemble(
    source: str,
    *,
    filename: str = "<string>",
    defines: Mapping[str, int | str] | None = None,
    include_dirs: Sequence[str | Path] = (),
    preprocessed: Preprocessed | None = None,
) -> ObjectFile:
    """Assemble a source in the vendor's syntax.

    `.supervisor` and `.worker` say which instructions are legal from there on; before either, all are. Names
    that are never defined become undefined globals. An address in an instruction becomes the relocation its
    field has; immediates take the sign-extended encoding when the value fits, as in the vendor's assembler
    (known).

    Args:
        source: text; comments are `#`, `//` and `/* */`.
        filename: shown in messages and kept as the object's name; its folder is searched first by `#include`
            and `.include`.
        defines: names with values, as if `.set` and `#define` stood at the top; texts for `#define` alone.
        include_dirs: further folders for `#include` and `.include`.
        preprocessed: the source after an outside preprocessor. Without it the built-in one is used for a
            source with preprocessor lines, and line markers (`# 12 "file"`) say where lines are from.

    Raises:
        AssemblyFaults (an AssemblyError): every fault of the source, up to a limit, with line, column and
        caret.
    """
    folders = [Path(folder) for folder in include_dirs]
    values = dict(defines or {})
    if preprocessed is None:
        if needs_preprocessing(source):
            preprocessed = preprocess(source, filename=filename, include_dirs=folders, defines=values)
        else:
            preprocessed = from_marked(source, filename) if is_marked(source) else Preprocessed(source, ())
    numbers = {name: value for name, value in values.items() if isinstance(value, int)}
    layout = Layout()
    for read in range(1, MAXIMUM_READS + 1):
        sources = Sources(preprocessed.text, filename, preprocessed.origins, folders)
        sources.warnings += preprocessed.warnings
        found = deepcopy(layout)
        try:
            item = Assembler(preprocessed.text, sources, numbers, found).run()
        except AssemblyFaults:
            if found == layout or read == MAXIMUM_READS:
                raise
        else:
            if found == layout:
                return item
        layout = found
    raise AssemblyError(
        f"the sizes of its parts depend on each other: they still change after {MAXIMUM_READS} readings",
        where=filename,
        hint="is a size computed from what it moves?",
    )

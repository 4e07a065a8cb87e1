"""The assembler: from source text to a relocatable object."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..isa.csrs import csr_number, weight_number
from ..isa.enums import constant
from ..isa.forms import form
from .conditions import Conditions
from .control import BRANCHES, COLLECTORS, CONDITIONS, call_macro, run_control
from .diagnostics import (
    MAXIMUM_FAULTS,
    MAXIMUM_REPEATS,
    AssemblyFaults,
    Diagnostic,
    SourceFault,
    did_you_mean,
)
from .directives import Arguments, default_flags, run_directive
from .emission import Emitter
from .expressions import Address, ExpressionParser, Value, evaluate
from .instructions import Instruction, read_instruction
from .lexer import Token, tokenise
from .macros import MAXIMUM_NESTING, MAXIMUM_STATEMENTS, Evaluate, Macro
from .matching import all_mnemonics, readings
from .object_builder import build_object
from .objects import ObjectFile
from .operands import Written, parse_operands
from .preprocess import (
    Preprocessed,
    from_marked,
    is_marked,
    needs_preprocessing,
    preprocess,
    public_constants,
)
from .settling import check_repeat, settle_code, settle_data
from .statements import CutFault, Expansion, Statement, cut_statements
from .symbols import MAXIMUM_SECTION_BYTES, Section, Symbol, SymbolTable, here

CONTROL_WORDS = frozenset(
    (*CONDITIONS, *BRANCHES, *COLLECTORS, ".endm", ".endmacro", ".endr", ".exitm", ".purgem")
)
_HEAD = re.compile(r"\s*([A-Za-z_.$][\w.$]*|\d+)\s*(:|=(?!=))?")
_WEIGHT = re.compile(r"\$CWEI_(\d+)_(\d+)$")
_SETZI = {"mreg": form("setzi $mDst0, zimm20"), "areg": form("setzi $aDst0, zimm20")}


class _TooManyFaults(Exception):
    pass


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


class _Scope:
    """Names in expressions: assigned values at once, instruction set constants, labels by reference.

    `lookups` counts uses of names that a source may give another meaning later.
    """

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self.lookups = 0

    def name(self, name: str, offset: int) -> Value:
        self.lookups += 1
        symbols = self._assembler.symbols
        symbol = symbols.symbols.get(name)
        if symbol is None:
            number = constant(name)
            if number is None:
                number = public_constants().get(name)
            if number is not None:
                return number
            symbol = symbols.get(name)
        if symbol.value is not None:
            return symbol.value
        return Address(symbol, 0)

    def local(self, reference: str, offset: int) -> Value:
        self.lookups += 1
        try:
            return Address(self._assembler.symbols.local(reference), 0)
        except SourceFault as fault:
            raise SourceFault(fault.message, offset, hint=fault.hint) from None

    def register(self, name: str, offset: int) -> Value:
        number = csr_number(name)
        if number is not None:
            return number
        weight = _WEIGHT.match(name)
        if weight and int(weight.group(1)) < 16 and int(weight.group(2)) < 4:
            return weight_number(int(weight.group(1)), int(weight.group(2)))
        from ..isa.csrs import CSRS
        from ..isa.registers import ALIASES, parse_register

        if parse_register(name) is not None:
            raise SourceFault(f"{name} is a register; a number is needed here", offset)
        known = [f"${item.name}" for item in CSRS] + list(ALIASES)
        raise SourceFault(f"there is no register {name}", offset, hint=did_you_mean(name, known))

    def here(self) -> Value:
        self.lookups += 1
        return here(self._assembler.section)


class Assembler:
    """State of one assembly. Use `assemble`.

    Lines of all files are numbered through in the order they are read, so that a statement knows its place
    by one number; `origins` says which file and line each is.
    """

    def __init__(
        self,
        source: str,
        filename: str,
        defines: Mapping[str, int],
        *,
        origins: Sequence[tuple[str, int]] | None = None,
        include_dirs: Sequence[Path] = (),
    ) -> None:
        self.filename = filename
        self.include_dirs = tuple(include_dirs)
        self.lines = source.split("\n")
        self.origins: list[tuple[str, int]] = list(origins or ())
        self.origins += [(filename, line + 1) for line in range(len(self.origins), len(self.lines))]
        self.include_depth = 0
        self.diagnostics: list[tuple[int, Diagnostic]] = []
        self.symbols = SymbolTable(self.where)
        self.sections: dict[str, Section] = {}
        self.section = self.named_section(".text")
        self.previous: Section | None = None
        self.section_stack: list[tuple[Section, Section | None]] = []
        self.emitter = Emitter(where=self.where)
        self.conditions = Conditions()
        self.macros: dict[str, Macro] = {}
        self.macro_calls = 0
        self.calls_of: dict[str, int] = {}
        self.alternate: Evaluate | None = None
        self._locals = 0
        self._told_again = 0
        self.warnings: list[str] = []
        self.sizes: list[tuple[Symbol, Statement, int]] = []
        self.scope = _Scope(self)
        self._bundle: _Bundle | None = None
        self._repeated: dict[str, Instruction] = {}
        self._statements_left = MAXIMUM_STATEMENTS
        statements, faults = cut_statements(source)
        self._frames = [_Frame(statements, False, 0)]
        start = Statement("", 1, 0)
        for name, value in defines.items():
            self.symbols.assign(name, value, start)
        self.report_cuts(faults, None)

    # ---- what directives use

    def named_section(self, name: str) -> Section:
        section = self.sections.get(name)
        if section is None:
            flags, kind = default_flags(name)
            section = self.sections[name] = Section(name, kind, flags)
        return section

    def origin(self, line: int) -> tuple[str, int]:
        """File and line (from 1) of a line of any file read so far."""
        return self.origins[min(line, len(self.origins)) - 1]

    def where(self, line: int) -> str:
        """A line in words, seen from the main file: `line 3`, or `file:3`."""
        name, number = self.origin(line)
        return f"line {number}" if name == self.filename else f"{name}:{number}"

    def include(self, name: str, source: str, statement: Statement) -> None:
        """Read the statements of another file next. Raises SourceFault when files are nested too deeply."""
        base = len(self.lines)
        lines = source.split("\n")
        self.lines += lines
        self.origins += [(name, line + 1) for line in range(len(lines))]
        statements, faults = cut_statements(source, line=base + 1)
        self.report_cuts(faults, None)
        self.push(statements, statement, macro=False)

    def found(self, wanted: str, statement: Statement, place: int) -> Path:
        """A file named in the source: beside the file that names it, or in an include folder.

        Raises SourceFault.
        """
        home = Path(self.origin(statement.line)[0]).parent
        for folder in (home, *self.include_dirs):
            if (folder / wanted).is_file():
                return folder / wanted
        raise SourceFault(f"there is no file {wanted}", place, hint="give its folder with -I")

    def warn(self, text: str, statement: Statement) -> None:
        """Tell the user something that is no fault."""
        name, line = self.origin(statement.line)
        self.warnings.append(f"{name}:{line}: {text}")

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

    def enter(self, section: Section) -> None:
        self.previous, self.section = self.section, section

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

    # ---- faults

    def report(self, fault: SourceFault, statement: Statement) -> None:
        """Remember a fault. Stops the assembly once there are too many."""
        statement = fault.statement or statement
        line, column = statement.position(fault.offset)
        notes: list[str] = []
        if statement.expansion is None:
            shown = self.lines[line - 1].rstrip("\r") if line <= len(self.lines) else ""
        else:
            before = statement.text[: fault.offset]
            shown = statement.text.split("\n")[before.count("\n")]
            column = fault.offset - (before.rindex("\n") + 1 if "\n" in before else 0)
            expansion: Expansion | None = statement.expansion
            while expansion is not None:
                name, number = self.origin(expansion.call.line)
                notes.append(f"in {expansion.name}, expanded at {name}:{number}")
                expansion = expansion.call.expansion
        self._add(line, column, shown, fault.message, fault.hint, tuple(notes))

    def report_cuts(self, faults: list[CutFault], statement: Statement | None) -> None:
        """Remember faults of cutting a source or an expansion (then `statement` is the call)."""
        for fault in faults:
            if statement is not None:
                self.report(SourceFault(f"in the expansion: {fault.message}", 0, hint=fault.hint), statement)
            else:
                shown = self.lines[fault.line - 1].rstrip("\r")
                self._add(fault.line, fault.column, shown, fault.message, fault.hint, ())

    def _add(
        self, line: int, column: int, shown: str, message: str, hint: str | None, notes: tuple[str, ...]
    ) -> None:
        name, number = self.origin(line)
        item = (line, Diagnostic(name, number, column + 1, message, shown, hint, notes))
        if item in self.diagnostics:
            self._told_again += 1
            if self._told_again > MAXIMUM_REPEATS:
                raise _TooManyFaults
            return
        if len(self.diagnostics) >= MAXIMUM_FAULTS:
            raise _TooManyFaults
        self.diagnostics.append(item)

    # ---- the work

    def run(self) -> ObjectFile:
        """Assemble everything. Raises AssemblyFaults with every fault."""
        more = False
        item: ObjectFile | None = None
        try:
            self._read()
            self._settle()
            item = build_object(self)
        except _TooManyFaults:
            more = True
        if self.diagnostics:
            self.diagnostics.sort(key=lambda item: (item[0], item[1].column))
            raise AssemblyFaults(self.filename, [item for _, item in self.diagnostics], more=more)
        assert item is not None
        return item

    def _read(self) -> None:
        frames = self._frames
        while frames:
            frame = frames[-1]
            if frame.index >= len(frame.statements):
                frames.pop()
                for opener in self.conditions.cut_to(frame.conditions):
                    self.report(SourceFault("this condition is never closed", hint="add `.endif`"), opener)
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
                self.report(fault, statement)

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
            self.report(SourceFault(fault.message, offset, hint=fault.hint), statement)

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
                instructions = self._load_constant(operands, offset, statement)
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

    def _load_constant(self, operands: list[Written], offset: int, statement: Statement) -> list[Instruction]:
        """`ldconst` as one or two instructions: setzi below 2^20, `or` with a high immediate, or both
        (known).

        An address takes one setzi: all of tile memory lies below 2^20.
        """
        if len(operands) != 2 or operands[0].kind not in _SETZI or operands[1].kind != "expr":
            raise SourceFault("`ldconst` takes a register and a value", offset)
        target, value = operands
        if not isinstance(value.value, int):
            return [read_instruction("setzi", operands, offset, statement)]
        number = value.value
        if not -(1 << 31) <= number < 1 << 32:
            raise SourceFault(f"{number} ({number:#x}) does not fit in 32 bits", value.offset)
        number &= 0xFFFFFFFF
        low, high = number & 0xFFFFF, number & 0xFFF00000
        result = []
        if low or not high:
            result.append(
                read_instruction("setzi", [target, Written("expr", low, value.offset)], offset, statement)
            )
        if high:
            source = target if low else Written(target.kind, 15, target.offset)
            result.append(
                read_instruction(
                    "or", [target, source, Written("expr", high, value.offset)], offset, statement
                )
            )
        return result

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

    def _settle(self) -> None:
        """Everything is placed: patch what was open and check repeat bodies."""
        emitter = self.emitter
        if self._bundle is not None:
            self.report(SourceFault("this bundle is not closed", hint="add `}`"), self._bundle.statement)
        for code in emitter.code_fixups:
            try:
                settle_code(emitter, code)
            except SourceFault as fault:
                self.report(fault, code.statement)
        for data in emitter.data_fixups:
            try:
                settle_data(emitter, data)
            except SourceFault as fault:
                self.report(SourceFault(fault.message, data.place, hint=fault.hint), data.statement)
        for body in emitter.repeats:
            try:
                check_repeat(emitter, body)
            except SourceFault as fault:
                self.report(fault, body.statement)


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
    if preprocessed is None and needs_preprocessing(source):
        preprocessed = preprocess(source, filename=filename, include_dirs=folders, defines=values)
    elif preprocessed is None and is_marked(source):
        preprocessed = from_marked(source, filename)
    numbers = {name: value for name, value in values.items() if isinstance(value, int)}
    if preprocessed is None:
        return Assembler(source, filename, numbers, include_dirs=folders).run()
    origins, warnings = preprocessed.origins, preprocessed.warnings
    assembler = Assembler(preprocessed.text, filename, numbers, origins=origins, include_dirs=folders)
    assembler.warnings += warnings
    return assembler.run()

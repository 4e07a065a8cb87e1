"""A translated worker: blocks, repeats, branches, exits, counts."""

from __future__ import annotations

from .. import codes
from .. import state as at
from ..engine_registers import COUNT_HIGH, COUNT_LOW, FP_CTL, PC, REPEAT_COUNT, REPEAT_END, REPEAT_FIRST
from ..instruction_tables import INFO_A_REGISTER, INFO_LANES, INFO_RESULTS, instruction_tables
from . import reasons
from . import scratch as sc
from .accesses import Analysis
from .auxiliary import csr_exists_for_worker
from .lowering import Lowering
from .matrix import MatrixEmitter, mode_of
from .operands import Value
from .program import Block, Operation, Program, Step
from .scratch import FAST, GENERAL

MOST_TARGETS = 64
"""Targets of indirect branches that one translation knows."""
SAVED_CSRS = 8
"""Workers' control registers below this number are restored when a launch is undone."""


def changes_control(program: Program) -> bool:
    """True if the code writes $FP_CTL, so that only general code is right."""
    return any(
        step.aux is not None
        and step.aux.group == codes.GROUP_UPPER
        and step.aux.function == codes.UPUT
        and 0x100 + step.aux.immediate == FP_CTL
        for step in program.steps()
    )


def wide_pairs(program: Program) -> set[int]:
    """A register pairs that are kept as one value.

    Those that 64-bit loads or stores touch, and those that more aux instructions write as pairs than
    by words.
    """
    pairs: set[int] = set()
    votes: dict[int, int] = {}
    for step in program.steps():
        words = step.aux.info >> INFO_RESULTS & 3 if step.aux is not None else 0
        if step.aux is not None and words:
            pair = step.aux.register(3) & ~1
            votes[pair] = votes.get(pair, 0) + (1 if words == 2 else -1)
        op = step.main
        if op is None or op.group != codes.GROUP_MEMORY or not op.info >> INFO_A_REGISTER & 1:
            continue
        count = 2 if op.function in (codes.LDST64PACE, codes.LD2X64PACE, codes.LD2XST64PACE) else 1
        for index in range(count):
            first = op.register(index)
            size_log = op.info >> INFO_LANES & 7
            if op.function >= codes.LD2X64PACE or size_log >= 3:
                pairs |= {first & ~1, first & ~1 | 2} if size_log == 4 else {first & ~1}
                if op.function == codes.LD2XST64PACE and index == 0:
                    pairs.add((first & ~1) + 2)
    return {pair for pair in pairs | {pair for pair, count in votes.items() if count > 0} if pair < 8}


class WorkerEmitter(MatrixEmitter):
    """Turns a program into one LLVM function."""

    def __init__(self, program: Program, flavour: int, fast_halves: bool) -> None:
        super().__init__(flavour, fast_halves, wide_pairs(program))
        self.program = program
        self.pending_issues = 0
        self.leaves = False

    def function(self, name: str) -> str:
        """The whole function: (state, context, scratch) -> 0, or why the launch must be undone: 2 for an
        infinity or a NaN in fast code, 3 for a branch to code it does not know, 1 for anything else."""
        build = self.builder
        build.label("begin")
        self.prepare(mode_of(self.program.steps(), self.fast_halves, self.flavour == FAST))
        build.jump(_label(self.program.entry))
        for block in self.program.blocks.values():
            self._block(block)
        if self.leaves:
            self._leave()
        for reason in sorted(self.bail_reasons):
            build.label(f"bail_{reason}")
            build.store("i64", str(reason), build.at("%scratch", "i64", sc.REASON))
            build.jump("bail")
        build.label("bail")
        self.look_at_peaks()
        some = build.op(f"icmp ne i64 {build.load('i64', '%specials')}, 0")
        build.end(f"ret i64 {build.op(f'select i1 {some}, i64 2, i64 1')}")
        return build.text(f"define i64 @{name}(ptr noalias %state, i64 %context, ptr noalias %scratch)")

    # ---- counts

    def flush(self) -> None:
        """Bring the counters up to date."""
        build = self.builder
        for place, count in (
            ("%issues", self.pending_issues),
            ("%slots", self.pending_issues + self.pending_slots),
        ):
            if count:
                build.store("i64", build.op(f"add i64 {build.load('i64', place)}, {count}"), place)
        self.pending_issues = self.pending_slots = 0

    def within_budget(self, more: str) -> None:
        """Give up if so many more issues exceed the budget."""
        build = self.builder
        limit = build.load("i64", build.at("%scratch", "i64", sc.LIMIT))
        total = build.op(f"add i64 {build.load('i64', '%issues')}, {more}")
        self.bail_if(build.op(f"icmp sgt i64 {total}, {limit}"), reasons.BUDGET)

    # ---- blocks

    def _block(self, block: Block) -> None:
        self.builder.label(_label(block.address))
        stretch: list[Step] = []
        stretches: list[list[Step]] = []
        for step in block.steps:
            if step.control() == codes.RPT:
                stretches += [stretch, [step]]
                stretch = []
            else:
                stretch.append(step)
        stretches.append(stretch)
        for steps in stretches:
            if steps and steps[0].control() == codes.RPT:
                self._repeat(steps[0])
            elif steps:
                analysis = Analysis()
                analysis.follow(steps)
                self.begin(analysis, False)
                self.look_ahead()
                for step in steps:
                    self._step(step)
                    if self.builder.closed or self.builder.dead:
                        break
        last = block.steps[-1]
        self._fall_to(last.body_end or last.following)

    def _fall_to(self, address: int) -> None:
        """The end of a block that goes on at an address."""
        if self.builder.closed or self.builder.dead:
            self.builder.jump(self.bail(reasons.UNKNOWN_CODE))
            self.unpacked.clear()
            self.forget_entered()
            self.pending_issues = self.pending_slots = 0
            return
        self._settle()
        self._go(address)

    def _settle(self) -> None:
        """Everything in its canonical form, as blocks expect it."""
        self.pack_all()
        self.settle_sums()
        self.flush()

    def _go(self, address: int) -> None:
        known = address in self.program.blocks
        self.builder.jump(_label(address) if known else self.bail(reasons.UNKNOWN_CODE))

    def _step(self, step: Step) -> None:
        if step.faulty:
            self.builder.jump(self.bail(reasons.UNKNOWN_CODE))
            return
        self.pending_issues += 1
        op = step.main
        csr = step.control() in (codes.GET, codes.PUT)
        if op is not None and csr:
            # The cycle counter tells the issue, whatever slots the other half takes behind it.
            self._csr(step, op)
            if self.builder.closed:
                return
        result = self.aux(step.aux) if step.aux is not None else None
        if op is not None and not csr:
            if op.group == codes.GROUP_WORDS:
                self._word(op)
            elif op.group == codes.GROUP_MEMORY:
                self.memory(op)
            elif op.group == codes.GROUP_CONTROL:
                self.land(result)
                self._control(step, op)
                return
            else:
                self.builder.jump(self.bail(reasons.UNKNOWN_CODE))
        self.land(result)

    def _word(self, op: Operation) -> None:
        """Integer and lane instructions on M registers."""
        meaning = instruction_tables().groups[op.group].functions[op.function]
        values = []
        for index in range(len(meaning.parameters)):
            place = op.place(index)
            if place == 63:
                values.append(Value("i", str(op.immediate)))
            else:
                values.append(Value("i", self.read_m64(op.register(index)) if place else "0"))
        lowering = Lowering(self.builder, None)
        text = lowering.as_int(lowering.call(meaning.function, values))
        self.write_m(op.word >> (op.place(3) - 1) & 15, self.builder.op(f"trunc i64 {text} to i32"))

    # ---- control

    def _csr(self, step: Step, op: Operation) -> None:
        build = self.builder
        number = op.word & 0xFF
        repeat = (REPEAT_COUNT, REPEAT_FIRST, REPEAT_END)
        if not csr_exists_for_worker(number):
            build.jump(self.bail(reasons.CONTROL))
        elif op.function == codes.PUT:
            if number >= SAVED_CSRS or number in repeat:
                build.jump(self.bail(reasons.CONTROL))
            else:
                build.store("i64", self.read_m64(op.register(0)), self.csr(number))
        elif number == PC:
            self.write_m(op.register(0), str(step.address))
        elif number in (COUNT_LOW, COUNT_HIGH):
            self._cycle(op, 32 if number == COUNT_HIGH else 0)
        else:
            value = build.op(f"trunc i64 {build.load('i64', self.csr(number))} to i32")
            self.write_m(op.register(0), value)

    def _cycle(self, op: Operation, shift: int) -> None:
        """The cycle of this issue: the first one, and six for each turn since."""
        build = self.builder
        self.flush()
        place = build.op(f"add i64 %context, {at.STARTS}")
        start = build.load("i64", build.op(f"getelementptr i64, ptr %state, i64 {place}"))
        turns = build.op(f"sub i64 {build.load('i64', '%slots')}, 1")
        cycle = build.op(f"add i64 {start}, {build.op(f'mul i64 {turns}, 6')}")
        self.write_m(op.register(0), build.op(f"trunc i64 {build.op(f'lshr i64 {cycle}, {shift}')} to i32"))

    def _control(self, step: Step, op: Operation) -> None:
        """Branches, exits and traps: the last step of a block."""
        build, function = self.builder, op.function
        if function == codes.BRI:
            self._jump_to(step, op.immediate)
        elif function == codes.BR:
            self._indirect(op)
        elif function in (codes.BRZ, codes.BRNZ, codes.BRNEG, codes.BRPOS):
            value = self.read_m(op.register(0))
            test = {codes.BRZ: "eq", codes.BRNZ: "ne", codes.BRNEG: "slt", codes.BRPOS: "sge"}[function]
            self._branch(step, build.op(f"icmp {test} i32 {value}, 0"), op.immediate)
        elif function == codes.BRNZDEC:
            value = self.read_m(op.register(0))
            nonzero = build.op(f"icmp ne i32 {value}, 0")
            less = build.op(f"sub i32 {value}, {build.op(f'zext i1 {nonzero} to i32')}")
            self.write_m(op.register(0), less)
            self._branch(step, nonzero, op.immediate)
        elif function == codes.CALL:
            self.write_m(op.register(0), str(step.following))
            self._jump_to(step, op.immediate)
        elif function in (codes.EXITZ, codes.EXITNZ, codes.EXITNEG, codes.EXITPOS):
            value = self.read_m(op.register(0))
            test = {codes.EXITZ: "eq", codes.EXITNZ: "ne", codes.EXITNEG: "slt", codes.EXITPOS: "sge"}[
                function
            ]
            agrees = build.op(f"icmp {test} i32 {value}, 0")
            build.store("i64", build.op(f"zext i1 {agrees} to i64"), "%agrees")
            build.store("i64", str(step.following), "%last")
            self._settle()
            self.leaves = True
            build.jump("leave")
        else:
            build.jump(self.bail(reasons.TRAP))

    def _jump_to(self, step: Step, target: int) -> None:
        self._settle()
        if target <= step.address:
            self.within_budget("0")
        self._go(target)

    def _branch(self, step: Step, condition: str, target: int) -> None:
        """Two ways; the budget is looked at before going back."""
        build = self.builder
        self._settle()
        taken, other = build.name("taken"), build.name("other")
        build.branch(condition, taken, other)
        build.label(taken)
        if target <= step.address:
            self.within_budget("0")
        self._go(target)
        build.label(other)

    def _indirect(self, op: Operation) -> None:
        """To addresses behind calls, and to those that such branches have gone to before."""
        build = self.builder
        target = self.read_m(op.register(0))
        self._settle()
        self.within_budget("0")
        cases = " ".join(
            f"i32 {address}, label %{_label(address)}" for address in sorted(self.program.returns)
        )
        elsewhere = build.name("elsewhere")
        build.end(f"switch i32 {target}, label %{elsewhere} [{cases}]")
        build.label(elsewhere)
        if len(self.program.returns) >= MOST_TARGETS:
            build.jump(self.bail(reasons.INDIRECT))
            return
        build.store("i64", build.op(f"zext i32 {target} to i64"), build.at("%scratch", "i64", sc.TARGET))
        build.end("ret i64 3")

    def _leave(self) -> None:
        build = self.builder
        build.label("leave")
        self.look_at_conflicts()
        self.look_at_sums()
        self.look_at_peaks()
        self.bail_if(build.op(f"icmp ne i64 {build.load('i64', '%specials')}, 0"), reasons.SPECIAL)
        self.close_spans()
        self.store_back()
        self.store_accumulators()
        for place, name in (
            (sc.SLOTS, "slots"),
            (sc.ISSUES, "issues"),
            (sc.AGREES, "agrees"),
            (sc.LAST, "last"),
        ):
            build.store("i64", build.load("i64", f"%{name}"), build.at("%scratch", "i64", place))
        build.end("ret i64 0")

    # ---- repeats

    def _repeat(self, step: Step) -> None:
        build = self.builder
        assert step.main is not None
        self.pending_issues += 1
        result = self.aux(step.aux) if step.aux is not None else None
        if step.main.place(0):
            count = build.op(f"and i64 {self.read_m64(step.main.register(0))}, 65535")
        else:
            count = str(step.main.word >> 8 & 0xFFF)
        self.land(result)
        self.flush()
        analysis = Analysis()
        analysis.follow(step.body)
        self.pack_all()
        pairs: list[int] = sorted(analysis.fields_used())
        for pair in pairs:
            self.unpack(pair)
        entered = self.enter_repeat(step.body)
        enter, loop, end = build.name("enter"), build.name("loop"), build.name("end")
        build.branch(build.op(f"icmp ne i64 {count}, 0"), enter, end)
        build.label(enter)
        if not step.body or any(item.faulty for item in step.body):
            build.jump(self.bail(reasons.UNKNOWN_CODE))
        else:
            self.within_budget(build.op(f"mul i64 {count}, {len(step.body)}"))
            self.begin(analysis, True)
            self.hoist(count)
            self.hold_weights(step.body)
            left = build.alloca("i64", "left")
            build.store("i64", count, left)
            build.label(loop)
            self.begin_round(entered)
            for item in step.body:
                self._step(item)
                if self.builder.closed or self.builder.dead:
                    break
            self.end_round(entered)
            for pair in sorted(self.unpacked - set(pairs)):
                self.pack(pair)
            for pair in pairs:
                self.unpack(pair)
            # Counted once for all repetitions.
            issues, slots = self.pending_issues, self.pending_issues + self.pending_slots
            self.pending_issues = self.pending_slots = 0
            rest = build.op(f"sub i64 {build.load('i64', left)}, 1")
            build.store("i64", rest, left)
            after = build.name("after")
            build.branch(build.op(f"icmp ne i64 {rest}, 0"), loop, after)
            build.label(after)
            self.release_weights()
            for place, each in (("%issues", issues), ("%slots", slots)):
                total = build.op(
                    f"add i64 {build.load('i64', place)}, {build.op(f'mul i64 {count}, {each}')}"
                )
                build.store("i64", total, place)
            build.store("i64", "0", self.csr(REPEAT_COUNT))
            build.store("i64", str(step.following), self.csr(REPEAT_FIRST))
            build.store("i64", str(step.body_end), self.csr(REPEAT_END))
        self.unpacked = set(pairs)
        build.label(end)
        self.begin_round(entered)


def _label(address: int) -> str:
    return f"at_{address:x}"


def module_source(program: Program, flavour: int, fast_halves: bool, name: str) -> str:
    """LLVM text of a translation."""
    if changes_control(program):
        flavour = GENERAL
    emitter = WorkerEmitter(program, flavour, fast_halves)
    body = emitter.function(name)
    weights = '!0 = !{!"branch_weights", i32 1, i32 100000}\n'
    return "\n".join([*emitter.builder.externals.values(), body, weights])

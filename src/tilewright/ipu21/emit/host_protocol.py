"""What the host does for a package: pages, calls, commands."""

from __future__ import annotations

from ...package.records import EntryPoint, HostCall, HostExchange, HostPage
from ..machine.host import SLOT_BYTES
from .host_plan import COMMAND_PAGE, COMMAND_PAGE_BYTES, DATA_PAGE, Batches
from .tile_programs import HostTraffic

STARTUP_MARK = 23
"""Last mark the loader leaves when a host program follows: one per batch of 64 tiles (known)."""
INITIALIZE_COMMAND, RUN_COMMAND = 1, 0


def _call(name: str, command: int, inputs: Batches | None, outputs: Batches | None) -> HostCall:
    call = HostCall(name, command, 0)
    if inputs is not None:
        call.inputs, call.input_batch_ends = inputs.host_slices, inputs.ends
    if outputs is not None:
        call.outputs, call.output_batch_ends = outputs.host_slices, outputs.ends
    call.phases = 2 * (len(call.input_batch_ends) + len(call.output_batch_ends))
    return call


def host_exchange(traffic: HostTraffic, invocations: int = 1) -> HostExchange:
    """Pages and calls of a program with this traffic. All batches of all calls use the same slots.

    Args:
        invocations: times that one `run` command runs the program. The program itself loops for ever, so it
            is the same for any number.
    """
    run = _call("run", RUN_COMMAND, traffic.inputs, traffic.outputs)
    run.invocations, run.phases = invocations, run.phases * invocations
    calls = [run]
    if traffic.weights.slots:
        calls.insert(0, _call("initialize", INITIALIZE_COMMAND, traffic.weights, None))
    slots = max(traffic.weights.tiles, traffic.inputs.tiles, traffic.outputs.tiles)
    return HostExchange(
        startup_mark=STARTUP_MARK,
        command_page=COMMAND_PAGE,
        command_offset=0,
        pages=[HostPage(COMMAND_PAGE, COMMAND_PAGE_BYTES), HostPage(DATA_PAGE, slots * SLOT_BYTES)],
        attach_order=[COMMAND_PAGE, DATA_PAGE],
        calls=calls,
    )


def entry_points(exchange: HostExchange) -> list[EntryPoint]:
    """The same calls as commands by name."""
    return [EntryPoint(call.name, call.command, call.phases) for call in exchange.calls]

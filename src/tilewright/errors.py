"""Errors a user can meet. Each says what is wrong, where, and what would help, in one line."""

from __future__ import annotations


class TilewrightError(Exception):
    """Base of every error that is the input's fault, or the machine's, and not a defect of Tilewright.

    Args:
        what: the fault, in plain words, with the values involved.
        where: file and position, operator, tile, buffer; whatever places it.
        hint: the smallest change that would help.
    """

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text} ({self.hint})" if self.hint else text


class UsageError(TilewrightError):
    """The request itself makes no sense: unknown name, missing file, wrong option value."""


class GraphError(TilewrightError):
    """A graph, its text form or a traced function is not well formed."""


class ShapeError(GraphError):
    """Shapes or element types do not fit an operator or a binding."""


class ModelError(TilewrightError):
    """The files of a model's checkpoint are truncated, contradict each other, or are something else."""


class UnsupportedError(TilewrightError):
    """Well formed, but this version cannot do it."""


class AssemblyError(TilewrightError):
    """An assembly source has faults; `str()` shows every one with its line, column and caret."""


class ObjectError(TilewrightError):
    """A relocatable object or linked image is malformed."""


class LinkError(TilewrightError):
    """Objects do not fit together, or do not fit the memory they are linked into."""


class PlacementError(TilewrightError):
    """The model does not fit the tiles' memory."""


class ScheduleError(TilewrightError):
    """An exchange phase cannot be scheduled, or its rows break a rule of the fabric."""


class PackageError(TilewrightError):
    """A package is malformed, truncated, or made for something else."""


class ProfileError(TilewrightError):
    """A profile is malformed, truncated, or of another version."""


class BindingError(TilewrightError):
    """An array given to or asked from a package does not match its bindings."""


class DeviceError(TilewrightError):
    """A device is missing, busy, or in a state that does not allow the request."""


class MismatchError(TilewrightError):
    """A device computed something else than the reference, by more than the operator's tolerance."""


class MissingDependencyError(TilewrightError):
    """An optional Python package is needed and not installed."""


class SimulationError(TilewrightError):
    """The simulated chip stopped: a fault of the program, or something that nothing can move on.

    Attributes:
        category: who is at fault: "program" (the tiles' code), "package" (what was loaded), "host" (marks or
            pages), "unsupported" (the simulator cannot do it) or "fact unknown" (no public source says what
            the machine does).
        tile: physical id, or None when the whole chip is meant.
        context: "supervisor" or "worker 0".."worker 5", or None.
        address: byte address of the instruction, or None.
        symbol: that address as name + offset when the package names it.
        cycle: global cycle, or None.
        event: events since the exit of the exchange phase's barrier, or None.
    """

    def __init__(
        self,
        what: str,
        *,
        category: str = "program",
        tile: int | None = None,
        context: str | None = None,
        address: int | None = None,
        symbol: str | None = None,
        cycle: int | None = None,
        event: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(what, hint=hint)
        self.category = category
        self.tile = tile
        self.context = context
        self.address = address
        self.cycle = cycle
        self.event = event
        self.symbol = symbol
        self.name(symbol)

    def name(self, symbol: str | None) -> None:
        """Sets the symbol of the address, and with it the text of `where`."""
        self.symbol = symbol
        parts = []
        if self.tile is not None:
            parts.append(f"tile {self.tile}")
        if self.context is not None:
            parts.append(self.context)
        if self.address is not None:
            parts.append(f"{self.address:#x}" + (f" <{symbol}>" if symbol else ""))
        if self.event is not None:
            parts.append(f"event {self.event}")
        elif self.cycle is not None:
            parts.append(f"cycle {self.cycle}")
        self.where = ", ".join(parts) or None

"""Look into runs on the simulated chip: compare every operator, stop anywhere, see registers and tensors."""

from .breakpoints import Breakpoint
from .debugger import Debugger, Stopped
from .inspection import Tensor, Writer
from .operator_check import OperatorReport, check_operators

__all__ = [
    "Breakpoint",
    "Debugger",
    "OperatorReport",
    "Stopped",
    "Tensor",
    "Writer",
    "check_operators",
]

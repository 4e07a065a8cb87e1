"""Learn encodings and flag numbers from an outside assembler."""

from .learn import Finding, ProbeReport, probe
from .outside import OutsideAssembler, Refused

__all__ = ["Finding", "OutsideAssembler", "ProbeReport", "Refused", "probe"]

"""The instruction reference in docs/isa: `python -m tilewright.ipu21.isa_pages docs/isa` writes it anew."""

from .page import pages

__all__ = ["pages"]

"""The IPU21 instruction set: forms, encoding, decoding, text, registers and named constants."""

from .aliases import Alias, aliases_named
from .csrs import csr_name, csr_number
from .decode import Instruction, InvalidInstruction, decode, decode_index, is_provisional, provisional_mask
from .encode import encode
from .enums import PROVISIONAL, constant
from .forms import FORMS, UNENCODABLE, Form, Operand, OperandError, form, forms_named
from .registers import parse_register, register_name
from .text import format_instruction

__all__ = [
    "FORMS",
    "PROVISIONAL",
    "UNENCODABLE",
    "Alias",
    "Form",
    "Instruction",
    "InvalidInstruction",
    "Operand",
    "OperandError",
    "aliases_named",
    "constant",
    "csr_name",
    "csr_number",
    "decode",
    "decode_index",
    "encode",
    "form",
    "format_instruction",
    "forms_named",
    "is_provisional",
    "parse_register",
    "provisional_mask",
    "register_name",
]

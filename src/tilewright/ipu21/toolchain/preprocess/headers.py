"""Headers of our own for the vendor's names, used when the user's include folders do not have them.

They define the public constants only: contexts, memory map, control register numbers and fields, and the
enumerations whose numbers are public. The flags whose numbers are not public are names of the assembler.
"""

from __future__ import annotations

import functools

from ...isa.csrs import CSRS
from ...isa.enums import PROVISIONAL, constants
from ...machine.memory import ELEMENT_BYTES, MAX_ADDRESS_BITS, REGION1_BASE, TILE_BASE, TILE_BYTES, TILE_END
from ...machine.timing import WORKER_SLOTS

PREDEFINED = {"__IPU__": "1", "__IPU_ARCH_VERSION__": "21", "__ASSEMBLER__": "1"}
"""Macros the vendor's compiler defines for this machine when it preprocesses assembly (known)."""

_PREFIXES = {"worker": ("W",), "supervisor": ("S",), "both": ("W", "S")}


def register_constants() -> dict[str, int]:
    """`CSR_W_NAME__INDEX`, `..__FIELD__SHIFT` and `..__FIELD__MASK` (mask before shifting) of every CSR."""
    result: dict[str, int] = {}
    for csr in CSRS:
        for letter in _PREFIXES[csr.context]:
            stem = f"CSR_{letter}_{csr.name}__"
            result[stem + "INDEX"] = csr.number
            for name, lsb, width in csr.fields:
                result[f"{stem}{name}__SHIFT"] = lsb
                result[f"{stem}{name}__MASK"] = (1 << width) - 1
    return result


def machine_constants() -> dict[str, int]:
    """Contexts and memory map under the vendor's names."""
    return {
        "CTXT_WORKERS": WORKER_SLOTS,
        "CTXT_TOTAL": WORKER_SLOTS + 1,
        "TMEM_BASE_ADDR": TILE_BASE,
        "TMEM_SIZE": TILE_BYTES,
        "TMEM_ELEMSIZE": ELEMENT_BYTES,
        "TMEM_REGION0_BASE_ADDR": TILE_BASE,
        "TMEM_REGION0_SIZE": REGION1_BASE - TILE_BASE,
        "TMEM_REGION1_BASE_ADDR": REGION1_BASE,
        "TMEM_REGION1_SIZE": TILE_END - REGION1_BASE,
        "TMEM_REGION1_INTERLEAVE_FACTOR": 2,
        "TMEM_BYTE_MAX_ADDRESS_WIDTH": MAX_ADDRESS_BITS,
        "TMEM_FULL_ADDRESS_MASK": (1 << MAX_ADDRESS_BITS) - 1,
    }


@functools.cache
def public_constants() -> dict[str, int]:
    """Control registers, contexts and memory map, which the assembler knows without their headers too."""
    return machine_constants() | register_constants()


_STACK_SIZES = """\
#ifndef TILEWRIGHT_STACK_SIZES
#define TILEWRIGHT_STACK_SIZES
#define FUNCTION_IS_WORKER "ax", @progbits
#define FUNCTION_IS_SUPERVISOR "ax", @progbits
.macro DEF_STACK_USAGE stack_bytes_, stack_owner_
.pushsection .stack_sizes
.long \\stack_owner_
.uleb128 \\stack_bytes_
.popsection
.endm
.macro DEF_STACK_SIZE_OWN stack_bytes_, stack_owner_
DEF_STACK_USAGE \\stack_bytes_, \\stack_owner_
.endm
#endif
"""

_VECTOR_TYPES = """\
/* Which compact vector layouts the target's compiler offers is not public; 16-bit scaled pointers cannot
   reach all of this memory. Choose with -D VECTOR_AVAIL_... and -D VECTORLIST_AVAIL_... */
"""


@functools.cache
def builtin_headers() -> dict[str, str]:
    """Text of each header by the path it is included with."""
    values = dict(public_constants())
    values |= {name: value for name, value in constants().items() if name not in PROVISIONAL}
    lines = ["#ifndef TILEWRIGHT_TILE_DEFINES", "#define TILEWRIGHT_TILE_DEFINES"]
    lines += [f"#define {name} {value:#x}" for name, value in values.items()]
    defines = "\n".join([*lines, "#endif", ""])
    include = '#include "arch/gc_tile_defines.h"\n'
    return {
        "arch/gc_tile_defines.h": defines,
        "tileimplconsts.h": include,
        "poplar/TileConstants.hpp": include,
        "poplibs_support/TileConstants.hpp": include,
        "poplar/StackSizeDefs.hpp": _STACK_SIZES,
        "poplar/AvailableVTypes.h": _VECTOR_TYPES,
    }

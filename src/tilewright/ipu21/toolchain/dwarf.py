"""Numbers of the debugging format DWARF, versions 2 to 5, as far as line tables need them (known)."""

from __future__ import annotations

LINE, LINE_STR, STR = ".debug_line", ".debug_line_str", ".debug_str"
INFO, ABBREV, RANGES = ".debug_info", ".debug_abbrev", ".debug_ranges"
PREFIX = ".debug_"

# Standard opcodes of a line program, and how many operands each has where a header does not say.
COPY, ADVANCE_PC, ADVANCE_LINE, SET_FILE = 1, 2, 3, 4
CONST_ADD_PC, FIXED_ADVANCE_PC = 8, 9
OPERANDS = (0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1)
# Extended opcodes.
END_SEQUENCE, SET_ADDRESS = 1, 2

# Contents of a file entry, and forms of values.
CONTENT_PATH, CONTENT_DIRECTORY = 1, 2
FORM_DATA2, FORM_DATA4, FORM_DATA8, FORM_STRING, FORM_BLOCK, FORM_DATA1 = 0x05, 0x06, 0x07, 0x08, 0x09, 0x0B
FORM_STRP, FORM_UDATA, FORM_SEC_OFFSET, FORM_DATA16, FORM_LINE_STRP = 0x0E, 0x0F, 0x17, 0x1E, 0x1F
FORM_ADDR = 0x01
FIXED_SIZES = {FORM_DATA1: 1, FORM_DATA2: 2, FORM_DATA4: 4, FORM_DATA8: 8, FORM_DATA16: 16}

# The one entry of our units.
TAG_COMPILE_UNIT = 0x11
AT_NAME, AT_STMT_LIST, AT_LOW_PC, AT_LANGUAGE, AT_PRODUCER, AT_RANGES = 0x03, 0x10, 0x11, 0x13, 0x25, 0x55
LANGUAGE_ASSEMBLER = 0x8001

// Casts between float, half and quarter, one worker each. State: in, out, groups of 8, metadata byte.
#include "poplar/TileConstants.hpp"

.macro CAST name
.section .text.\name, "ax"
.globl \name
.type \name, @function
.align 8
\name:
    ld32 $m0, $mvertex_base, $mzero, 0
    ld32 $m1, $mvertex_base, $mzero, 1
    ldz16 $m2, $mvertex_base, $mzero, 4
    ldz8 $m3, $mvertex_base, $mzero, 10
    add $m2, $m2, -1
.endm

.macro LOOP_END top
    brnzdec $m2, \top
    exitz $mzero
.endm

// The format bit is bit 7; the scale is the low six bits, negated on the way down.
.macro SET_QUARTER negate
    shr $m4, $m3, 7
  .if \negate
    sub $m3, 0, $m3
  .endif
    add $m5, $mworker_base, -8
    st32 $m4, $m5, $mzero, 0
    ld32 $a0, $m5, $mzero, 0
    uput $FP_NFMT, $a0
    st32 $m3, $m5, $mzero, 0
    ld32 $a0, $m5, $mzero, 0
    uput $FP_SCL, $a0
.endm

.worker
CAST float_to_half
1:  ld64step $a0:1, $mzero, $m0+=, 1
    { ld64step $a2:3, $mzero, $m0+=, 1 ; fnop }
    { ld64step $a0:1, $mzero, $m0+=, 1 ; f32v4tof16 $a4:5, $a0:3 }
    { ld64step $a2:3, $mzero, $m0+=, 1 ; fnop }
    { st64step $a4:5, $mzero, $m1+=, 1 ; f32v4tof16 $a4:5, $a0:3 }
    st64step $a4:5, $mzero, $m1+=, 1
    LOOP_END 1b

CAST half_to_float
1:  ld64step $a0:1, $mzero, $m0+=, 1
    { ld64step $a2:3, $mzero, $m0+=, 1 ; f16v2tof32 $a4:5, $a0 }
    { st64step $a4:5, $mzero, $m1+=, 1 ; f16v2tof32 $a4:5, $a1 }
    { st64step $a4:5, $mzero, $m1+=, 1 ; f16v2tof32 $a4:5, $a2 }
    { st64step $a4:5, $mzero, $m1+=, 1 ; f16v2tof32 $a4:5, $a3 }
    st64step $a4:5, $mzero, $m1+=, 1
    LOOP_END 1b

CAST half_to_quarter
    SET_QUARTER 1
1:  ld64step $a0:1, $mzero, $m0+=, 1
    ld64step $a2:3, $mzero, $m0+=, 1
    f16v8tof8 $a4:5, $a0:3
    st64step $a4:5, $mzero, $m1+=, 1
    LOOP_END 1b

CAST quarter_to_half
    SET_QUARTER 0
1:  ld64step $a0:1, $mzero, $m0+=, 1
    f8v4tof16 $a2:3, $a0
    { st64step $a2:3, $mzero, $m1+=, 1 ; f8v4tof16 $a2:3, $a1 }
    st64step $a2:3, $mzero, $m1+=, 1
    LOOP_END 1b

CAST float_to_int
1:
  .rept 8
    ld32step $a0, $mzero, $m0+=, 1
    f32int $a0, $a0, TFPU_ROUND_ZERO
    f32toi32 $a0, $a0
    st32step $a0, $mzero, $m1+=, 1
  .endr
    LOOP_END 1b

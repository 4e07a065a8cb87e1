// Sums over rows: in [rows][8] of half to out [8] of float, by gina and in two launches.
// $m2 out, $m3 in, $m4 scratch [6][8] of float, $m5 rows.
#include "poplar/TileConstants.hpp"
#include "poplar/StackSizeDefs.hpp"

.macro CLEAR_ACCUMULATORS areg
    setzi \areg, CSR_W_FP_CLR__ZAACC__MASK << CSR_W_FP_CLR__ZAACC__SHIFT
    uput $FP_CLR, \areg
.endm

.macro STORE_SUMS pointer, count
  .rept \count
    f32v2gina $a4:5, $azeros, 0
    st64step $a4:5, $mzero, \pointer+=, 1
  .endr
.endm

.supervisor
.section .text.reduce_add, "ax"
.globl reduce_add
.type reduce_add, @function
reduce_add:
    add $sp, $sp, -16
    st32 $m2, $sp, $mzero, 0
    st32 $m3, $sp, $mzero, 1
    st32 $m4, $sp, $mzero, 2
    st32 $m5, $sp, $mzero, 3
    setzi $m0, reduce_rows
    runall $m0, $sp, 0
    setzi $m0, reduce_partials
    sync TEXCH_SYNCZONE_LOCAL
    run $m0, $sp, 0
    sync TEXCH_SYNCZONE_LOCAL
    add $sp, $sp, 16
    br $lr
.size reduce_add, . - reduce_add
DEF_STACK_USAGE 16, reduce_add

.worker
.align 8
reduce_rows:
    get $m0, $WSR
    and $m0, $m0, CSR_W_WSR__CTXTID_M1__MASK
    { ld32 $m1, $mvertex_base, $mzero, 3 ; fnop }
    CLEAR_ACCUMULATORS $a0
    // (rows + 5 - id) / 6
    add $m1, $m1, 5
    sub $m1, $m1, $m0
    setzi $m2, 0xaaab
    mul $m1, $m1, $m2
    shr $m1, $m1, 18
    ld32 $m3, $mvertex_base, $mzero, 1
    shl $m2, $m0, 4
    add $m3, $m3, $m2
    ld32 $m4, $mvertex_base, $mzero, 2
    shl $m2, $m0, 5
    add $m4, $m4, $m2
    .align 8
    { rpt $m1, 2 ; fnop }
    { ld64step $a0:1, $mzero, $m3+=, 1 ; fnop }
    { ld64step $a2:3, $mzero, $m3+=, 11 ; fnop }
    { nop ; f16v8acc $a0:3 }
    STORE_SUMS $m4, 4
    exitz $mzero

.align 8
reduce_partials:
    ld32 $m4, $mvertex_base, $mzero, 2
    ld32 $m2, $mvertex_base, $mzero, 0
    setzi $m6, 1
.Lhalf:
    CLEAR_ACCUMULATORS $a0
    mov $m5, $m4
  .rept CTXT_WORKERS
    ld64step $a0:1, $mzero, $m5+=, 1
    ld64step $a2:3, $mzero, $m5+=, 3
    f32v4acc $a0:3
  .endr
    STORE_SUMS $m2, 2
    add $m4, $m4, 16
    brnzdec $m6, .Lhalf
    exitz $mzero

// Squares and absolute values of float4s, one worker: state in, groups, out.
.macro NORM name, instruction
.section .text.\name, "ax"
.globl \name
.align 8
\name:
    ld32 $m1, $mvertex_base, $mzero, 0
    ld32 $m0, $mvertex_base, $mzero, 1
    ld32 $m2, $mvertex_base, $mzero, 2
    CLEAR_ACCUMULATORS $a0
    add $m0, $m0, -1
1:  ld128step $a0:3, $mzero, $m1+=, 1
    \instruction $a0:3
    brnzdec $m0, 1b
    STORE_SUMS $m2, 2
    exitz $mzero
.endm
NORM sum_of_squares, f32v4sqacc
NORM sum_of_sizes, f32v4absacc

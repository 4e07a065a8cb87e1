// Per row of floats: softmax in place, and the place of the largest. Vertex state: in, columns, rows, out.
#include <arch/gc_tile_defines.h>

#define mRow m0
#define mRows m1
#define mColumns m2
#define mBase m3
#define mPtr m4
#define mCount m5
#define mTmp m6

// Begins the loop over this worker's rows, with mBase at the row. `shift` is the log of a column's bytes.
.macro ROW_LOOP_BEGIN name, columns_log, shift
    get $mRow, $WSR
    and $mRow, $mRow, CSR_W_WSR__CTXTID_M1__MASK
    ld32 $mColumns, $mvertex_base, $mzero, 1
    ld32 $mRows, $mvertex_base, $mzero, 2
  .if \columns_log
    shr $mColumns, $mColumns, \columns_log
  .endif
.L\name\()_row:
    cmpult $mTmp, $mRow, $mRows
    brz $mTmp, .L\name\()_exit
    ld32 $mBase, $mvertex_base, $mzero, 0
    mul $mTmp, $mRow, $mColumns
    shl $mTmp, $mTmp, \shift
    add $mBase, $mBase, $mTmp
.endm

.macro ROW_LOOP_END name
    add $mRow, $mRow, CTXT_WORKERS
    bri .L\name\()_row
.L\name\()_exit:
    exitz $mzero
.endm

.worker
.section .text.softmax, "ax"
.globl softmax
.align 8
softmax:
    ROW_LOOP_BEGIN softmax, 1, 3
    // The largest element.
    mov $mPtr, $mBase
    add $mCount, $mColumns, -1
    ld64 $a0:1, $mBase, $mzero, 0
1:  ld64step $a2:3, $mzero, $mPtr+=, 1
    f32v2max $a0:1, $a0:1, $a2:3
    brnzdec $mCount, 1b
    f32max $a0, $a0, $a1
    // Exponentials of what is left, and their sum in the accumulators.
    { mov $mPtr, $mBase ; setzi $a1, CSR_W_FP_CLR__ZAACC__MASK << CSR_W_FP_CLR__ZAACC__SHIFT }
    { add $mCount, $mColumns, -1 ; uput $FP_CLR, $a1 }
    { ld32 $a4, $mvertex_base, $mzero, 3 ; mov $a1, $a0 }
    mov $a5, $a4
1:  ld64 $a2:3, $mPtr, $mzero, 0
    f32v2sub $a2:3, $a2:3, $a0:1
    f32exp $a2, $a2
    f32exp $a3, $a3
    { st64step $a2:3, $mzero, $mPtr+=, 1 ; f32v2mac $a2:3, $a4:5 }
    brnzdec $mCount, 1b
    f32v2gina $a0:1, $azeros, 0
    f32add $a0, $a0, $a1
    f32oox $a0, $a0
    mov $mPtr, $mBase
    add $mCount, $mColumns, -1
1:  ld64 $a2:3, $mPtr, $mzero, 0
    f32v2mul $a2:3, $a0:B, $a2:3
    { st64step $a2:3, $mzero, $mPtr+=, 1 ; fnop }
    brnzdec $mCount, 1b
    ROW_LOOP_END softmax

.section .text.argmax, "ax"
.globl argmax
.align 8
argmax:
    ROW_LOOP_BEGIN argmax, 0, 2
    ld32step $a0, $mzero, $mBase+=, 1
    setzi $m7, 0        // best
    setzi $m8, 1        // here
    add $mCount, $mColumns, -2
    brneg $mCount, .Lfound
.Lscan:
    ld32step $a1, $mzero, $mBase+=, 1
    // A larger one replaces both; of equal ones the first stays.
    f32cmpgt $a2, $a1, $a0
    { atom $mTmp, $a2 ; f32max $a0, $a0, $a1 }
    movnz $m7, $mTmp, $m8
    add $m8, $m8, 1
    brnzdec $mCount, .Lscan
.Lfound:
    ld32 $mPtr, $mvertex_base, $mzero, 3
    stm32 $m7, $mPtr, $mRow
    ROW_LOOP_END argmax

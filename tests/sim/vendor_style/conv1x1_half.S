// out[row][o] = partial[row][o] + sum over 16 inputs of in[row][i] * weight[o][i], rows dealt to workers in turn.
//
// Supervisor arguments: $m2 out, $m3 in, $m4 weights, $m5 partials, $m6 rows. Streams may be read two turns
// past their end. Input, partials and output lie in different memory elements.
#include "poplar/TileConstants.hpp"
#include "poplar/StackSizeDefs.hpp"

#define STATE_OUT 0
#define STATE_IN 1
#define STATE_PARTIALS 2
#define STATE_ROWS 3
#define STATE_BYTES 16
// 64-bit words per row of every stream, and from a row's last word to the worker's next row.
#define WORDS 4
#define JUMP (1 + (CTXT_WORKERS - 1) * WORDS)
#define ZAACC_MASK (CSR_W_FP_CLR__ZAACC__MASK << CSR_W_FP_CLR__ZAACC__SHIFT)

#define mId m0
#define mStride m1
#define mOut m2
#define mIn m3
#define mPart m4
#define mRows m5
#define mTmp m6
#define mPtrs m8:9
#define mPtrLo m8
#define mPtrHi m9

// Weight entries of UNITS units, in memory order of outputs: with both sets in use, outputs 4k+2, 4k+3 belong
// to the second set.
.macro LOAD_WEIGHTS_ONE_SET
.set index, 0
.rept 32
    ld64putcs index
    .set index, index + 1
.endr
.endm

.macro LOAD_WEIGHTS_BOTH_SETS
.set pair, 0
.rept 4
  .irp first, 0, 32
    .irp unit, 0, 1
      ld128putcs 8 * pair + \first + 4 * \unit
      ld128putcs 8 * pair + \first + 4 * \unit + 2
    .endr
  .endr
  .set pair, pair + 1
.endr
.endm

.macro CONV1X1 NAME, AMP, WEIGHTS, PREFIX=TAMP_F16V4_E4
.globl \NAME
.type \NAME, @function
.supervisor
.section .text.\NAME, "ax"
.align 8
\NAME:
    put     $CCCSLOAD, $m4
    add     $sp, $sp, -STATE_BYTES
    setzi   $m0, .Lworker_\NAME
    \WEIGHTS
    st32    $m2, $sp, $mzero, STATE_OUT
    st32    $m3, $sp, $mzero, STATE_IN
    st32    $m5, $sp, $mzero, STATE_PARTIALS
    st32    $m6, $sp, $mzero, STATE_ROWS
    runall  $m0, $sp, 0
    sync    TEXCH_SYNCZONE_LOCAL
    add     $sp, $sp, STATE_BYTES
    br      $lr
.size \NAME, . - \NAME
DEF_STACK_USAGE STATE_BYTES, \NAME

.worker
.section .text.\NAME\()_worker, "ax"
.align 8
.Lworker_\NAME:
    get     $mId, $WSR
    and     $mId, $mId, CSR_W_WSR__CTXTID_M1__MASK
    ld32    $mRows, $mvertex_base, STATE_ROWS
    ld32    $mOut, $mvertex_base, STATE_OUT
    ld32    $mIn, $mvertex_base, STATE_IN
    ld32    $mPart, $mvertex_base, STATE_PARTIALS
    // Rows of this worker: (rows + 5 - id) / 6, by a multiplication.
    add     $mRows, $mRows, CTXT_WORKERS - 1
    sub     $mRows, $mRows, $mId
    setzi   $mTmp, 0xaaab
    mul     $mRows, $mRows, $mTmp
    shr     $mRows, $mRows, 18
    brz     $mRows, .Ldone_\@
    shl     $mTmp, $mId, 5
    add     $mOut, $mOut, $mTmp
    add     $mIn, $mIn, $mTmp
    add     $mPart, $mPart, $mTmp
    tapack  $mPtrs, $mIn, $mPart, $mOut
    setzi   $mStride, JUMP
    setzi   $a0, ZAACC_MASK
    uput    $FP_CLR, $a0
    // Partials of the first row go in during four instructions without input.
  .irp last, 0, 0, 0, 1
    ld2x64pace $azeros, $a2:3, $mPtrs+=, $mStride, 0b0011 | (\last << 2)
    \AMP    $azeros, $azeros, $a2:3, \PREFIX\()_P1
  .endr
    ld2x64pace $a0:1, $a2:3, $mPtrs+=, $mStride, 0
    { ld2x64pace $a0:1, $a2:3, $mPtrs+=, $mStride, 0b0000 ; \AMP $azeros, $a0:1, $a2:3, \PREFIX\()_P0 }
    { ld2x64pace $a0:1, $a2:3, $mPtrs+=, $mStride, 0b0000 ; \AMP $azeros, $a0:1, $a2:3, \PREFIX\()_P1 }
    { ld2x64pace $a0:1, $a2:3, $mPtrs+=, $mStride, 0b0101 ; \AMP $azeros, $a0:1, $a2:3, \PREFIX\()_P2 }
    { ld2x64pace $a0:1, $a2:3, $mPtrs+=, $mStride, 0b0000 ; \AMP $azeros, $a0:1, $a2:3, \PREFIX\()_P3 }
    { ld2x64pace $a0:1, $a2:3, $mPtrs+=, $mStride, 0b0000 ; \AMP $a4:5, $a0:1, $a2:3, \PREFIX\()_P0 }
    add     $mRows, $mRows, -1
    .align 8
    { rpt   $mRows, (.Lend_\@ - .Lbody_\@) / 8 - 1 ; fnop }
.Lbody_\@:
    { ld2xst64pace $a0:3, $a4:5, $mPtrs+=, $mStride, 0b000000 ; \AMP $a4:5, $a0:1, $a2:3, \PREFIX\()_P1 }
    { ld2xst64pace $a0:3, $a4:5, $mPtrs+=, $mStride, 0b000101 ; \AMP $a4:5, $a0:1, $a2:3, \PREFIX\()_P2 }
    { ld2xst64pace $a0:3, $a4:5, $mPtrs+=, $mStride, 0b000000 ; \AMP $a4:5, $a0:1, $a2:3, \PREFIX\()_P3 }
    { ld2xst64pace $a0:3, $a4:5, $mPtrs+=, $mStride, 0b010000 ; \AMP $a4:5, $a0:1, $a2:3, \PREFIX\()_P0 }
.Lend_\@:
    { st64pace $a4:5, $mPtrs+=, $mzero, 0 ; \AMP $a4:5, $azeros, $azeros, \PREFIX\()_P1 }
    { st64pace $a4:5, $mPtrs+=, $mzero, 0 ; \AMP $a4:5, $azeros, $azeros, \PREFIX\()_P2 }
    { st64pace $a4:5, $mPtrs+=, $mzero, 0 ; \AMP $a4:5, $azeros, $azeros, \PREFIX\()_P3 }
    st64pace $a4:5, $mPtrs+=, $mzero, 0
.Ldone_\@:
    exitz   $mzero
.size .Lworker_\NAME, . - .Lworker_\NAME
.endm

CONV1X1 conv1x1_half_half,  f16v4hihov4amp, LOAD_WEIGHTS_BOTH_SETS
CONV1X1 conv1x1_half_float, f16v4sisoamp,   LOAD_WEIGHTS_ONE_SET

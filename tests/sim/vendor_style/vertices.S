// A supervisor that goes through a list of vertices: pairs of entry and state, count in $m3, list in $m2. Up to
// six run at a time, one per worker; then one vertex runs on all six with states 16 bytes apart.
#include "poplar/TileConstants.hpp"
#include "poplar/StackSizeDefs.hpp"

#define mList m2
#define mLeft m3
#define mEntry m4
#define mState m5
#define mBatch m6

.supervisor
.section .text.run_vertices, "ax"
.globl run_vertices
.type run_vertices, @function
.align 4
run_vertices:
    add     $sp, $sp, -8
    st32    $lr, $sp, $mzero, 0
.Lbatch:
    brz     $mLeft, .Lall
    // min(left, 6) launches.
    setzi   $mBatch, CTXT_WORKERS
    min     $mBatch, $mBatch, $mLeft
    sub     $mLeft, $mLeft, $mBatch
    add     $mBatch, $mBatch, -1
.Llaunch:
    ld32step $mEntry, $mzero, $mList+=, 1
    ld32step $mState, $mzero, $mList+=, 1
    run     $mEntry, $mState, 0
    brnzdec $mBatch, .Llaunch
    sync    TEXCH_SYNCZONE_LOCAL
    bri     .Lbatch
.Lall:
    brz     $m7, .Lreturn
    setzi   $mEntry, scale_by_worker
    runall  $mEntry, $m7, 4
    call    $lr, helper
    sync    TEXCH_SYNCZONE_LOCAL
.Lreturn:
    ld32    $lr, $sp, $mzero, 0
    add     $sp, $sp, 8
    br      $lr
.size run_vertices, . - run_vertices
DEF_STACK_USAGE 8, run_vertices

.section .text.helper, "ax"
helper:
    add     $m8, $m8, 1
    br      $lr

.macro VERTEX name, instruction
.worker
.section .text.\name, "ax"
.globl \name
.type \name, @function
.align 8
\name :
    // State: out, in0, in1, u16 pairs - 1, u16 unused. Addresses packed in one pair, selectors per stream.
    ld32    $m0, $mvertex_base, $mzero, 0
    ld32    $m1, $mvertex_base, $mzero, 1
    ld32    $m2, $mvertex_base, $mzero, 2
    ldz16   $m3, $mvertex_base, $mzero, 6
    tapack  $m4:5, $m1, $m2, $m0
    ld2x64pace $a0:1, $a2:3, $m4:5+=, $mzero, 0b0000
.Lloop_\@:
    \instruction $a4:5, $a0:1, $a2:3
    // Conflicts between the load and the store are avoided by separate instructions.
    st64pace $a4:5, $m4:5+=, $mzero, 0
    ld2x64pace $a0:1, $a2:3, $m4:5+=, $mzero, 0b0000
    brnzdec $m3, .Lloop_\@
    exitz   $mzero
.size \name, . - \name
.endm

VERTEX add_float, f32v2add
VERTEX mul_float, f32v2mul
VERTEX max_half, f16v4max

.worker
.section .text.scale_by_worker, "ax"
.align 8
scale_by_worker:
    // State: pointer, words, factor. Reads by base + delta + offset, delta counting bytes.
    ld32    $m0, $mvertex_base, $mzero, 0
    ld32    $m1, $mvertex_base, $mzero, 1
    ld32    $m2, $mvertex_base, $mzero, 2
    mov     $m3, $mzero
    add     $m1, $m1, -1
.Lword:
    ld32    $m4, $m0, $m3, 0
    mul     $m4, $m4, $m2
    st32step $m4, $m0, $m3+=, 1
    brnzdec $m1, .Lword
    exitz   $mzero

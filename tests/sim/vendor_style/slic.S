// A convolution along rows by 4 taps, 4 input channels: one pixel per SLIC instruction.
//
// Vertex state: out, in, partials (each row-major [rows][pixels]), words of a row of in, out and partials in
// bytes, output pixels per row, rows. Weights are loaded by the supervisor part from $m4.
#include "poplar/TileConstants.hpp"

.macro TAP_WEIGHTS first
  // Tap t of outputs 0..3 is 32 bytes; entries of units (6,7), (4,5), (2,3), (0,1) in turn, then the other set.
  .irp unit, 6, 4, 2, 0
    ld64putcs 4 * \unit + \first
    ld64putcs 4 * (\unit + 1) + \first
    ld64putcs 4 * (\unit + 8) + \first
    ld64putcs 4 * (\unit + 9) + \first
  .endr
.endm

.macro SLIC_VERTEX name, slic, load_partial, store_out, out, partial, entry=0, skip=0
.supervisor
.section .text.\name, "ax"
.globl \name
.type \name, @function
\name:
    put $CCCSLOAD, $m4
    setzi $m0, worker_\name
    nop
    TAP_WEIGHTS \entry
    runall $m0, $m2, 0
    sync TEXCH_SYNCZONE_LOCAL
    br $lr

.worker
.align 8
worker_\name:
    ldz16 $m0, $mvertex_base, $mzero, 13
    get $m1, $WSR
    and $m1, $m1, CSR_W_WSR__CTXTID_M1__MASK
    ldz16 $m2, $mvertex_base, $mzero, 12
.Lnext_row\@:
    cmpult $m3, $m1, $m0
    brz $m3, .Lleave\@
    ld32 $m4, $mvertex_base, $mzero, 0
    ld32 $m5, $mvertex_base, $mzero, 3
    mul $m5, $m5, $m1
    ld32 $m6, $mvertex_base, $mzero, 1
    add $m6, $m6, $m5
    ld32 $m5, $mvertex_base, $mzero, 4
    mul $m5, $m5, $m1
    { add $m4, $m4, $m5 ; setzi $a6, CSR_W_FP_CLR__ZAACC__MASK << CSR_W_FP_CLR__ZAACC__SHIFT }
    { ld32 $m7, $mvertex_base, $mzero, 2 ; uput $FP_CLR, $a6 }
    ld32 $m5, $mvertex_base, $mzero, 5
    mul $m5, $m5, $m1
    add $m7, $m7, $m5
    // Four pixels fill the pipe; the last output needs one instruction more than there are pixels.
  .rept 4
    ld64step $a0:1, $mzero, $m6+=, 1
    \load_partial \partial, $mzero, $m7+=, 1
    \slic \out, $a0:1, \partial, TSLIC_F16V4_1x4_W\entry
  .endr
    \load_partial \partial, $mzero, $m7+=, 1
    .align 8
    { rpt $m2, 2 ; fnop }
    { ld64step $a0:1, $mzero, $m6+=, 1 ; fnop }
    { \load_partial \partial, $mzero, $m7+=, 1 ; \slic \out, $a0:1, \partial, TSLIC_F16V4_1x4_W\entry }
    { \store_out \out, $mzero, $m4+=, 1 ; fnop }
    add $m1, $m1, CTXT_WORKERS
    bri .Lnext_row\@
.Lleave\@:
    exitz $mzero
.endm

SLIC_VERTEX slic_half_half,  f16v4hihoslic,   ld32step, st32step, $a2,   $a3
SLIC_VERTEX slic_half_float, f16v4sisoslic,   ld64step, st64step, $a2:3, $a4:5, 1
SLIC_VERTEX slic_half_half4, f16v4hihov4slic, ld64step, st64step, $a2:3, $a4:5, 1

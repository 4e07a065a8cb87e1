// Gathers through lists of 16-bit byte offsets. State: table, offsets, out, count. The list holds one entry more.
#include "poplar/TileConstants.hpp"

.macro GATHER name, load, dst, store
.worker
.section .text.\name, "ax"
.globl \name
.align 8
\name :
    ld32 $m0, $mvertex_base, $mzero, 0
    ld32 $m1, $mvertex_base, $mzero, 1
    ld32 $m2, $mvertex_base, $mzero, 2
    ld32 $m3, $mvertex_base, $mzero, 3
    // The first load only fetches the first offset.
    mov $m4, $mzero
    \load \dst, $m1++, $m0, $m4@
    .align 8
    { rpt $m3, 1 ; fnop }
    { \load \dst, $m1++, $m0, $m4@ ; fnop }
    { \store \dst, $mzero, $m2+=, 1 ; fnop }
    exitz $mzero
.endm

GATHER gather16, ldd16b16, $a0, st32step
GATHER gather32, ldd16a32, $a0, st32step
GATHER gather64, ldd16a64, $a0:1, st64step
GATHER gather_pairs, ldd16v2a32, $a0, st32step

// Sparse times dense: sum of values[i] * table[offset[i]], one accumulator.
.section .text.sparse_dot, "ax"
.globl sparse_dot
.align 8
sparse_dot:
    ld32 $m0, $mvertex_base, $mzero, 0
    ld32 $m1, $mvertex_base, $mzero, 1
    ld32 $m2, $mvertex_base, $mzero, 2
    ld32 $m3, $mvertex_base, $mzero, 3
    ld32 $m5, $mvertex_base, $mzero, 4
    { mov $m4, $mzero ; setzi $a4, CSR_W_FP_CLR__ZAACC__MASK << CSR_W_FP_CLR__ZAACC__SHIFT }
    { ldd16a32 $azero, $m1++, $m0, $m4@ ; uput $FP_CLR, $a4 }
    zero $a0:1
    .align 8
    { rpt $m3, 1 ; fnop }
    { ldd16a32 $a0, $m1++, $m0, $m4@ ; f32mac $a0, $a1 }
    { ld32step $a1, $mzero, $m5+=, 1 ; fnop }
    f32mac $a0, $a1
    f32v2gina $a0:1, $azeros, 0
    st32 $a0, $m2, $mzero, 0
    exitz $mzero

// Transposes 4x4 blocks of halves through the accumulators. Vertex state: in, out, blocks (all workers share it).
#include "poplar/TileConstants.hpp"
#define mBlocks m0
#define mIn m1
#define mOut m2
#define mId m3

.worker
.section .text.transpose4x4, "ax"
.globl transpose4x4
.type transpose4x4, @function
.align 8
transpose4x4:
    get $mId, $WSR
    and $mId, $mId, CSR_W_WSR__CTXTID_M1__MASK
    ld32 $mIn, $mvertex_base, $mzero, 0
    ld32 $mOut, $mvertex_base, $mzero, 1
    ld32 $mBlocks, $mvertex_base, $mzero, 2
    // Worker w takes a run of blocks: begin = blocks * w / 6, end = blocks * (w + 1) / 6.
    mul $m4, $mBlocks, $mId
    add $m5, $m4, $mBlocks
    setzi $m6, 0x2aab
    mul $m4, $m4, $m6
    shr $m4, $m4, 16
    mul $m5, $m5, $m6
    shr $m5, $m5, 16
    sub $mBlocks, $m5, $m4
    brz $mBlocks, .Lend
    shl $m4, $m4, 5
    add $mIn, $mIn, $m4
    add $mOut, $mOut, $m4
    ld64step $a0:1, $mzero, $mIn+=, 1
    ld64step $a2:3, $mzero, $mIn+=, 1
    { ld64step $a0:1, $mzero, $mIn+=, 1 ; f16v4istacc $azeros, $a0:1, $a2:3, TISTACC_P0 }
    ld64step $a2:3, $mzero, $mIn+=, 1
    add $mBlocks, $mBlocks, -1
    f16v4istacc $azeros, $a0:1, $a2:3, TISTACC_P1
    f16v4stacc $a4:5, TSTACC_P0
    { st64step $a4:5, $mzero, $mOut+=, 1 ; f16v4stacc $a4:5, TSTACC_P1 }
    brz $mBlocks, .Llast
.Lnext:
    { st64step $a4:5, $mzero, $mOut+=, 1 ; fnop }
    ld64step $a0:1, $mzero, $mIn+=, 1
    ld64step $a2:3, $mzero, $mIn+=, 1
    { ld64step $a0:1, $mzero, $mIn+=, 1 ; f16v4istacc $a4:5, $a0:1, $a2:3, TISTACC_P0 }
    { st64step $a4:5, $mzero, $mOut+=, 1 ; fnop }
    ld64step $a2:3, $mzero, $mIn+=, 1
    f16v4istacc $a4:5, $a0:1, $a2:3, TISTACC_P1
    { st64step $a4:5, $mzero, $mOut+=, 1 ; f16v4stacc $a4:5, TSTACC_P0 }
    add $mBlocks, $mBlocks, -1
    { st64step $a4:5, $mzero, $mOut+=, 1 ; f16v4stacc $a4:5, TSTACC_P1 }
    brnz $mBlocks, .Lnext
.Llast:
    { st64step $a4:5, $mzero, $mOut+=, 1 ; f16v4istacc $a4:5, $azeros, $azeros, TISTACC_P0 }
    { st64step $a4:5, $mzero, $mOut+=, 1 ; f16v4istacc $a4:5, $azeros, $azeros, TISTACC_P1 }
    st64step $a4:5, $mzero, $mOut+=, 1
.Lend:
    exitz $mzero
.size transpose4x4, . - transpose4x4

// Dropout of halves with the workers' generators. State: in, out, groups of 4 per worker, keep probability.
#include "poplar/TileConstants.hpp"

.supervisor
.section .text.seed_workers, "ax"
.globl seed_workers
// $m2: a seed per worker, one vertex base per worker.
seed_workers:
    setzi $m0, seed_worker
    runall $m0, $m2, 1
    sync TEXCH_SYNCZONE_LOCAL
    br $lr

.worker
.section .text.seed_worker, "ax"
.align 8
seed_worker:
    ld32 $a0, $mvertex_base, $mzero, 0
    put $PRNG_SEED, $a0
    // The first draws after seeding are thrown away.
    setzi $m0, 15 - 1
1:  urand64 $azeros
    brnzdec $m0, 1b
    exitz $mzero

.section .text.dropout, "ax"
.globl dropout
.align 8
dropout:
    get $m0, $WSR
    and $m0, $m0, CSR_W_WSR__CTXTID_M1__MASK
    ld32 $m1, $mvertex_base, $mzero, 0
    ld32 $m2, $mvertex_base, $mzero, 1
    ld32 $m3, $mvertex_base, $mzero, 2
    ld32 $a4, $mvertex_base, $mzero, 3
    mul $m4, $m0, $m3
    shl $m4, $m4, 3
    add $m1, $m1, $m4
    add $m2, $m2, $m4
    .align 8
    { rpt $m3, 2 ; fnop }
    { ld64step $a0:1, $mzero, $m1+=, 1 ; fnop }
    { nop ; f16v4rmask $a2:3, $a0:1, $a4 }
    { st64step $a2:3, $mzero, $m2+=, 1 ; fnop }
    exitz $mzero

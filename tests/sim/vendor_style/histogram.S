// Counts bytes 0..15. Every worker counts its share in a table of its own; worker 0 then adds the six tables
// without any barrier: all workers take the same number of turns, so the other tables are complete.
// Vertex state: data, bytes per worker, tables [6][16], out [16].
#include "poplar/TileConstants.hpp"

.worker
.section .text.histogram, "ax"
.globl histogram
.type histogram, @function
.align 8
histogram:
    get     $m0, $WSR
    and     $m0, $m0, CSR_W_WSR__CTXTID_M1__MASK
    ld32    $m1, $mvertex_base, $mzero, 0
    ld32    $m2, $mvertex_base, $mzero, 1
    ld32    $m3, $mvertex_base, $mzero, 2
    mul     $m4, $m0, $m2
    add     $m1, $m1, $m4
    shl     $m4, $m0, 6
    add     $m3, $m3, $m4
    mov     $m5, $m3
  .rept 16
    st32step $mzero, $mzero, $m5+=, 1
  .endr
    add     $m2, $m2, -1
.Lcount:
    ldz8step $m5, $mzero, $m1+=, 1
    ld32    $m6, $m3, $mzero, $m5
    add     $m6, $m6, 1
    stm32   $m6, $m3, $m5
    brnzdec $m2, .Lcount
    brnz    $m0, .Lleave
    // The stores of workers 1..5 lie in the same rotation as worker 0's last one, so they are done by now.
    ld32    $m4, $mvertex_base, $mzero, 3
    setzi   $m5, 15
.Lsum:
    mov     $m7, $m3
    mov     $m8, $mzero
  .rept CTXT_WORKERS
    ld32step $m6, $mzero, $m7+=, 16
    add     $m8, $m8, $m6
  .endr
    st32step $m8, $mzero, $m4+=, 1
    add     $m3, $m3, 4
    brnzdec $m5, .Lsum
.Lleave:
    exitz   $mzero
.size histogram, . - histogram

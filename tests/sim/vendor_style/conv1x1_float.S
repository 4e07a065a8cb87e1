// The same product in single precision: 8 inputs per row. Arguments as in conv1x1_half.S.
#include <arch/gc_tile_defines.h>

#define IN_BYTES 32
#define CLEAR (CSR_W_FP_CLR__ZAACC__MASK << CSR_W_FP_CLR__ZAACC__SHIFT)

// OUT_BYTES: bytes of a row of results and partials. STEP: 2 if pairs move on every second phase only.
.macro FLOAT_CONV name:req, amp:req, out_log:req, step=1
.section .text.\name, "ax"
.globl \name
.type \name, @function
.align 8
.supervisor
\name :
    put $CCCSLOAD, $m4
    setzi $m0, worker_\name
    nop
  .ifc \step, 2
    .set entry, 0
    .rept 32
        ld64putcs entry
        .set entry, entry + 1
    .endr
  .else
    .set output, 0
    .rept 16
        .set unit, (output / 4) * 2 + output % 2 + ((output % 4) / 2) * 8
        ld128putcs 4 * unit
        ld128putcs 4 * unit + 2
        .set output, output + 1
    .endr
  .endif
    st32step $m2, $mzero, $m7+=, 1
    st32step $m3, $mzero, $m7+=, 1
    st32step $m5, $mzero, $m7+=, 1
    st32step $m6, $mzero, $m7+=, 1
    add $m7, $m7, -16
    runall $m0, $m7, 0
    sync TEXCH_SYNCZONE_LOCAL
    br $lr
.size \name, . - \name

.worker
worker_\name:
    get $m0, $WSR
    and $m0, $m0, CSR_W_WSR__CTXTID_M1__MASK
    ld32 $m1, $mvertex_base, $mzero, 0
    ld32 $m2, $mvertex_base, $mzero, 1
    ld32 $m3, $mvertex_base, $mzero, 2
    ld32 $m4, $mvertex_base, $mzero, 3
    // One row after the other: worker w takes rows w, w + 6, ...
.Lrow\@:
    cmpult $m5, $m0, $m4
    brz $m5, .Ldone\@
    { mov $m6, $m2 ; setzi $a0, CLEAR }
    { shl $m7, $m0, 5 ; uput $FP_CLR, $a0 }
    add $m6, $m6, $m7
    shl $m7, $m0, \out_log
    add $m8, $m3, $m7
    add $m9, $m1, $m7
  .irp phase, 0, 1, 2, 3, 4, 5, 6, 7
    .if (\phase % \step) == 0
      ld64step $a2:3, $mzero, $m8+=, 1
      // Partials enter on a phase that does not swap.
      \amp $azeros, $azero, $a2:3, (\phase % 2) + 2
    .endif
  .endr
  .irp phase, 0, 1, 2, 3, 4, 5, 6, 7
    ld32step $a0, $mzero, $m6+=, 1
    \amp $azeros, $a0, $azeros, TAMP_F32_E4_P\phase
  .endr
  .irp phase, 0, 1, 2, 3, 4, 5, 6, 7
    \amp $a4:5, $azero, $azeros, TAMP_F32_E4_P\phase
    .if (\phase % \step) == 0
      st64step $a4:5, $mzero, $m9+=, 1
    .endif
  .endr
    add $m0, $m0, CTXT_WORKERS
    bri .Lrow\@
.Ldone\@:
    exitz $mzero
.endm

FLOAT_CONV name=conv1x1_float_8, amp=f32sisoamp, out_log=5, step=2
FLOAT_CONV name=conv1x1_float_16, amp=f32sisov2amp, out_log=6

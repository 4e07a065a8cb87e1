// A library in the vendor's manner: macros make vertices for types, tables hold offsets, a supervisor walks lists.
#include "library.h.S"
#include "library.h.S"   /* twice: guarded */

// ---- lib::Scale<T>: out[i] = in[i] * factor, split over workers by contiguous chunks of whole words

.macro SCALE_half dst, src, factor
  f16v2mul \dst, \src, \factor
.endm
.macro SCALE_float dst, src, factor
  f32mul \dst, \src, \factor
.endm

.irp type, half, float
  FUNCTION VERTEX(Scale)___\type
    ELEMENT_LOG2 \type, LOG
    ld32  $m0, $mvertex_base, $mzero, SCALE_OUT
    ld32  $m1, $mvertex_base, $mzero, SCALE_IN
    {     ldz16 $m2, $mvertex_base, $mzero, SCALE_COUNT   // elements
          fnop                                            /* nothing yet */  }
    ld32  $a2, $mvertex_base, $mzero, SCALE_FACTOR
    get   $workerId, $WSR
    { and $workerId, $workerId, CSR_W_WSR__CTXTID_M1__MASK ;
  .ifc \type, half
      sort4x16lo $a2, $a2, $a2
  .else
      fnop
  .endif
    }
    // Words per worker, rounded up; then what is left for this one.
    shr   $m2, $m2, 2 - LOG
    add   $m3, $m2, CTXT_WORKERS - 1
    DIV_BY_6 $m3
    mul   $chunk, $m3, $workerId
    sub   $m2, $m2, $chunk
    brneg $m2, .Lnone_\type
    min   $m2, $m2, $m3
    brz   $m2, .Lnone_\type
    shl   $chunk, $chunk, 2
    WITH_FNOP(add $m0, $m0, $chunk)
    add   $m1, $m1, $chunk
    ld32step $a0, $mzero, $m1+=, 1
    .align 8
    { rpt $m2, (2f - 1f) / 8 - 1
      fnop }
1:
    { nop ; SCALE_\type $a1, $a0, $a2 }
    { st32step $a1, $mzero, $m0+=, 1 ; fnop }
    WITH_FNOP(ld32step $a0, $mzero, $m1+=, 1)
2:
.Lnone_\type:
    exitz $mzero
  END_FUNCTION VERTEX(Scale)___\type
.endr

// ---- lib::Permute: out[i] = in[offset[i]], offsets as scaled 16-bit numbers in a table behind the code

#define pOut m0
#define pIn m1
#define pLast m2
#define pList m3
#define pAt m4
FUNCTION lib_permute
    ld32 $pOut, $mvertex_base, $mzero, 0
    ld32 $pIn, $mvertex_base, $mzero, 1
    ld32 $pLast, $mvertex_base, $mzero, 2
    setzi $pList, order
    ld32 $pAt, $mvertex_base, $mzero, 3
    shl $pAt, $pAt, 4
    add $pList, $pList, $pAt
.Lnext:
    ldz16step $pAt, $mzero, $pList+=, 1
    ld32 $a0, $pIn, $mzero, $pAt       // scaled by four
    st32step $a0, $mzero, $pOut+=, 1
    brnzdec $pLast, .Lnext
    exitz $mzero
END_FUNCTION lib_permute

.section .rodata.order, "a", @progbits
.align 2
order:
    .hword 7, 6, 5, 4, 3, 2, 1, 0
    .irpc digit, 02461357
    .hword 0\digit
    .endr
    .set i, 0
    .rept 8
    .short i * 3 & 7     // (i * 3) & 7 either way
    .set i, i + 1
    .endr
order_end:
.ifne (order_end - order) - 48
.error "the table has another size"
.endif

// ---- lib::Spread: pairs of bytes by 16-bit deltas that were computed on the stack

FUNCTION lib_spread
    // Four deltas 2 * id, 2 * id + 1 (times 2 bytes) go below the stack's base and come back.
    get   $m0, $WSR
    and   $m0, $m0, CSR_W_WSR__CTXTID_M1__MASK << CSR_W_WSR__CTXTID_M1__SHIFT
    shl   $m1, $m0, 2
    add   $m2, $m1, 2
    sort4x16lo $m1, $m1, $m2
    add   $m11, $mworker_base, -8
    st32  $m1, $m11, $mzero, 0
    st32  $m1, $m11, $mzero, 1
    ld32  $m5, $m11, $mzero, 0
    ld32  $m4, $mvertex_base, $mzero, 1
    mov   $m6, $mzero
    shl   $m7, $m5, 16
    shr   $m7, $m7, 16
    ldz16 $m8, $m4, $m7, 0
    shr   $m7, $m5, 16
    ldz16 $m9, $m4, $m7, 0
    sort4x16lo $m8, $m8, $m9
    ld32  $m4, $mvertex_base, $mzero, 0
    mul   $m0, $m0, BYTES_IN(1, float)
    add   $m4, $m4, $m0
    st32  $m8, $m4, $mzero, 0
    exitz $mzero
END_FUNCTION lib_spread, 8

// ---- the supervisor: a list of jobs by number; entries are 16-bit word offsets from the start of memory

.pushsection .data.jobs, "aw"
.align 4
jobs:
    .short VERTEX(Scale)___half@relative@16@s2, VERTEX(Scale)___float@relative@16@s2
    .short lib_permute@relative@16@s2
    .short lib_spread@relative@16@s2
job_kinds:
    .byte 1, 1, 0, 1          // on all workers?
    .long after - job_kinds
after:
.popsection

#define sJob m0
#define sState m1
#define sEntry m4
#define sAll m5
FUNCTION lib_run, supervisor, 4
    // $m2: list of (job, state) that ends with a negative job.
    add     $sp, $sp, -8
    st32    $lr, $sp, $mzero, 0
.Ljob:
    ld32step $sJob, $mzero, $m2+=, 1
    brneg   $sJob, .Ldone
    ld32step $sState, $mzero, $m2+=, 1
    call    $lr, start_job
    sync    TEXCH_SYNCZONE_LOCAL
    bri     .Ljob
.Ldone:
    ld32    $lr, $sp, $mzero, 0
    add     $sp, $sp, 8
    br      $lr
END_FUNCTION lib_run, 8

// In a group of its own: every file that includes this may have it, one stays.
.section .text.start_job, "axG", @progbits, start_job, comdat
.weak start_job
.type start_job, @function
.p2align 2
start_job:
    setzi   $sEntry, jobs
    shl     $sAll, $sJob, 1
    ldz16   $sEntry, $sEntry, $sAll, 0
    shl     $sEntry, $sEntry, 2
    setzi   $sAll, TMEM_BASE_ADDR
    add     $sEntry, $sEntry, $sAll
    setzi   $sAll, job_kinds
    ldz8    $sAll, $sAll, $sJob, 0
    brnz    $sAll, 1f
    run     $sEntry, $sState, 0
    br      $lr
1:  runall  $sEntry, $sState, 0
    br      $lr
.size start_job, .-start_job

.section .rodata.about, "aMS", @progbits, 1
about: .asciz STRING(lib, version LIBRARY_VERSION), "made" " here"
.globl about
.type about, @object
.section ".note.GNU-stack", "", @progbits
.ident "library"
.end
what follows .end is no text at all {{{

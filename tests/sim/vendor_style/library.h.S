/* What a library of vertices shares: names of
   vertices, state layouts, loops. Everything a preprocessor and an assembler can be asked for is here on purpose. */
#ifndef LIBRARY_H
#define LIBRARY_H

#include "poplar/AvailableVTypes.h"
#include <poplar/StackSizeDefs.hpp>
#include "poplar/TileConstants.hpp"

#define CAT_(a, b)        a ## b
#define CAT(a, b)         CAT_(a, b)
#define STRING_(...)      #__VA_ARGS__
#define STRING(...)       STRING_(__VA_ARGS__)
#define VERTEX(TYPE, ...) CAT(__runCodelet_lib__, TYPE)
#define WITH_FNOP(main...) { main ; \
                             fnop }
#define BYTES_IN(n, T)    ((n) * sizeof_##T)
#define sizeof_half       2U
#define sizeof_float      4UL

#if !defined(__IPU_ARCH_VERSION__) || (__IPU_ARCH_VERSION__ < 21 && !defined(ANY_IPU))
#error "don't know this machine"
#elif __has_include("no/such/header.h")
#include "no/such/header.h"
#endif

/* State of ns::Scale: pointers first. */
#define SCALE_OUT     0   // float *, or half *
#define SCALE_IN      1
#define SCALE_FACTOR  2
#define SCALE_COUNT   6   /* in halves */

#define workerId m11
#define chunk    m10

// n / 6 for n below 2^16, as a multiplication.
.macro DIV_BY_6 dst:req, src, tmp=$m9
  .ifb \src
    DIV_BY_6 \dst, \dst, \tmp
  .else
    setzi \tmp, (((1 << 18) + CTXT_WORKERS - 1) / CTXT_WORKERS)   # 0xAAAB
    mul   \dst, \src, \tmp
    shr   \dst, \dst, 18
  .endif
.endm

// The name of a type decides, as text and as a number.
.macro ELEMENT_LOG2 type, symbol
  .ifc \type, half
    .set \symbol, 1
  .elseif 1
    .ifnc \type,float
      .error "no such type"
    .endif
    .set \symbol, 2
  .endif
.endm

.macro FUNCTION name, mode=worker, align=8
  .ifeqs "\mode", "worker"
    .worker
    .section .text.\name, FUNCTION_IS_WORKER
  .else
    .supervisor
    .section .text.\name, FUNCTION_IS_SUPERVISOR
  .endif
  .globl \name
  .type \name, @function
  .p2align (\align > 4) & 1 + 2    /* 8 -> 3, 4 -> 2: operators as GNU orders them */
  \name\():
  .Lbegin_\name:
.endm

.macro END_FUNCTION name, stack=0
  .size \name, . - .Lbegin_\name
  DEF_STACK_USAGE \stack, \name
.endm
#endif // LIBRARY_H

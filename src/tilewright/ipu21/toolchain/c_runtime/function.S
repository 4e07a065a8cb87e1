# What every function of this folder begins and ends with.

# A function of `stack` bytes. Definitions of the program come before these: all names are weak.
.macro function name, stack=0
.section .stack_sizes, "", @progbits
.long .Lbegin_\name
.uleb128 \stack
.section .text.\name, "ax", @progbits
.p2align 2
.weak \name
.type \name, @function
\name:
.Lbegin_\name:
.endm

# Another name for the function that begins here.
.macro also name
.weak \name
.type \name, @function
\name:
.endm

.macro finish name
.size \name, . - \name
.endm

# Keep $m7..$m9 of the caller in a frame of `words` words, of which the first three hold them.
.macro enter words=4
add $m11, $m11, -4 * \words
st32 $m7, $m11, $m15, 0
st32 $m8, $m11, $m15, 1
st32 $m9, $m11, $m15, 2
.endm

.macro leave words=4
ld32 $m7, $m11, $m15, 0
ld32 $m8, $m11, $m15, 1
ld32 $m9, $m11, $m15, 2
add $m11, $m11, 4 * \words
br $m10
.endm

# A frame of `words` words, of which the first holds the link.
.macro enter_link words
add $m11, $m11, -4 * \words
st32 $m10, $m11, $m15, 0
.endm

.macro leave_link words
ld32 $m10, $m11, $m15, 0
add $m11, $m11, 4 * \words
br $m10
.endm

# Stores of less than a word, and of words without alignment: the machine stores whole words only.
# Known: names, arguments (address, value) and that the supervisor has names of its own for three of them.
.include "function.S"
.supervisor

# The bits of value (in place) that mask has go into the word at address.
.macro merge address, value, mask, word
ld32 \word, \address, $m15, 0
xor \value, \value, \word
and \value, \value, \mask
xor \value, \value, \word
st32 \value, \address, $m15, 0
.endm

# Where the value of `size` bytes begins: $m0 the word, $m2 the bit.
.macro locate
shl $m2, $m0, 3
and $m2, $m2, 24
andc $m0, $m0, 3
.endm

# The bits of the value in $m1 that mask has go where `locate` found, as far as that word reaches.
.macro merge_located mask
shl $m1, $m1, $m2
setzi $m4, \mask
shl $m4, $m4, $m2
merge $m0, $m1, $m4, $m3
.endm

function __st8
locate
merge_located 0xff
br $m10
finish __st8

function __st16
locate
merge_located 0xffff
br $m10
finish __st16

function __st16_misaligned
also __supervisor_st16_misaligned
locate
mov $m5, $m1
merge_located 0xffff
add $m2, $m2, -24
brnz $m2, 1f
add $m0, $m0, 4
shr $m5, $m5, 8
setzi $m4, 0xff
merge $m0, $m5, $m4, $m3
1:
br $m10
finish __st16_misaligned

function __st32_align1
also __supervisor_st32_align1
also __st32_align2
also __supervisor_st32_align2
locate
brnz $m2, 1f
st32 $m1, $m0, $m15, 0
br $m10
1:
add $m4, $m15, -1
shl $m4, $m4, $m2
shl $m5, $m1, $m2
merge $m0, $m5, $m4, $m3
sub $m2, 32, $m2
shr $m1, $m1, $m2
add $m4, $m15, -1
shr $m4, $m4, $m2
add $m0, $m0, 4
merge $m0, $m1, $m4, $m3
br $m10
finish __st32_align1

.worker

function __st16f
atom $m1, $a0
bri __st16
finish __st16f

function __st16f_misaligned
atom $m1, $a0
bri __st16_misaligned
finish __st16f_misaligned

function __st32f_align1
also __st32f_align2
atom $m1, $a0
bri __st32_align1
finish __st32f_align1

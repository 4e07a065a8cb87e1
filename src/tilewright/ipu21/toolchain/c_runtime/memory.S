# Bytes moved, filled and compared. Names and arguments are C's; results are in $m0.
.include "function.S"
.supervisor

# The low byte of value goes to the byte at address. Two words of scratch; the upper bits of value are lost.
.macro store_byte value, address, shift, x, word
shl \shift, \address, 3
and \shift, \shift, 24
andc \x, \address, 3
ld32 \word, \x, $m15, 0
shr \x, \word, \shift
xor \value, \value, \x
and \value, \value, 0xff
shl \value, \value, \shift
xor \word, \word, \value
andc \x, \address, 3
st32 \word, \x, $m15, 0
.endm

# $m4 + 1 words, each rolled together from $m5 and the next one at $m1; $m3 is where in its word the source began.
.macro move_words roll
1:
ld32step $m6, $m15, $m1+=, 1
\roll $m5, $m5, $m6
st32step $m5, $m15, $m0+=, 1
mov $m5, $m6
brnzdec $m4, 1b
add $m1, $m1, -4
add $m1, $m1, $m3
bri 8f
.endm

.worker
function memcpy, 8
add $m11, $m11, -8
st32 $m0, $m11, $m15, 0
st32 $m10, $m11, $m15, 1
call $m10, __move_bytes
ld32 $m0, $m11, $m15, 0
ld32 $m10, $m11, $m15, 1
add $m11, $m11, 8
br $m10
finish memcpy

# The copy of the vendor's runtime, for vertices, which have no stack: $m8 bytes from $m0 to $m1 (derived: published
# vertices call it so, and keep nothing in registers meanwhile).
function _Longmemcpy_entry
mov $m2, $m1
mov $m1, $m0
mov $m0, $m2
mov $m2, $m8
bri __move_bytes
finish _Longmemcpy_entry

# $m2 bytes from $m1 to $m0, first to last, of which a supervisor moves words one by one. $m0..$m6 and $a0..$a3 are
# lost.
.section .text.__move_bytes, "ax", @progbits
__move_bytes:
# Bytes until the destination is a word.
1:
brz $m2, 9f
and $m3, $m0, 3
brz $m3, 2f
ldz8step $m3, $m15, $m1+=, 1
store_byte $m3, $m0, $m4, $m5, $m6
add $m0, $m0, 1
add $m2, $m2, -1
bri 1b
2:
and $m3, $m1, 3
brnz $m3, 6f
# Both are words. A worker moves doublewords if both are.
brz $m12, 4f
or $m3, $m0, $m1
and $m3, $m3, 7
brnz $m3, 4f
shr $m3, $m2, 4
brz $m3, 4f
add $m3, $m3, -1
3:
ld64step $a0:1, $m15, $m1+=, 1
ld64step $a2:3, $m15, $m1+=, 1
st64step $a0:1, $m15, $m0+=, 1
st64step $a2:3, $m15, $m0+=, 1
brnzdec $m3, 3b
and $m2, $m2, 15
4:
shr $m3, $m2, 2
brz $m3, 8f
add $m3, $m3, -1
5:
ld32step $m4, $m15, $m1+=, 1
st32step $m4, $m15, $m0+=, 1
brnzdec $m3, 5b
bri 8f
# The source is no word, and each word of the destination comes out of two.
6:
shr $m4, $m2, 2
brz $m4, 8f
add $m4, $m4, -1
andc $m1, $m1, 3
ld32step $m5, $m15, $m1+=, 1
add $m6, $m3, -2
brz $m6, 6f
brpos $m6, 7f
move_words roll8r
6:
move_words roll16
7:
move_words roll8l
8:
and $m2, $m2, 3
brz $m2, 9f
add $m2, $m2, -1
1:
ldz8step $m3, $m15, $m1+=, 1
store_byte $m3, $m0, $m4, $m5, $m6
add $m0, $m0, 1
brnzdec $m2, 1b
9:
br $m10

.supervisor
# As memcpy, whatever overlaps.
function memmove, 8
sub $m3, $m0, $m1
cmpult $m3, $m3, $m2
brnz $m3, 1f
bri memcpy
1:
add $m11, $m11, -8
st32 $m0, $m11, $m15, 0
or $m3, $m0, $m1
or $m3, $m3, $m2
and $m3, $m3, 3
add $m0, $m0, $m2
add $m1, $m1, $m2
brz $m2, 9f
brz $m3, 3f
# From the last byte to the first.
2:
add $m0, $m0, -1
add $m1, $m1, -1
ldz8 $m3, $m1, $m15, 0
store_byte $m3, $m0, $m4, $m5, $m6
add $m2, $m2, -1
brnz $m2, 2b
bri 9f
3:
shr $m2, $m2, 2
add $m2, $m2, -1
4:
add $m0, $m0, -4
add $m1, $m1, -4
ld32 $m3, $m1, $m15, 0
st32 $m3, $m0, $m15, 0
brnzdec $m2, 4b
9:
ld32 $m0, $m11, $m15, 0
add $m11, $m11, 8
br $m10
finish memmove

# The byte $m1, $m2 times from $m0 on.
function memset, 8
add $m11, $m11, -8
st32 $m0, $m11, $m15, 0
shuf8x8lo $m1, $m1, $m1
sort4x16lo $m1, $m1, $m1
1:
brz $m2, 9f
and $m3, $m0, 3
brz $m3, 2f
mov $m3, $m1
store_byte $m3, $m0, $m4, $m5, $m6
add $m0, $m0, 1
add $m2, $m2, -1
bri 1b
2:
shr $m3, $m2, 2
brz $m3, 4f
add $m3, $m3, -1
3:
st32step $m1, $m15, $m0+=, 1
brnzdec $m3, 3b
4:
and $m2, $m2, 3
5:
brz $m2, 9f
mov $m3, $m1
store_byte $m3, $m0, $m4, $m5, $m6
add $m0, $m0, 1
add $m2, $m2, -1
bri 5b
9:
ld32 $m0, $m11, $m15, 0
add $m11, $m11, 8
br $m10
finish memset

# The difference of the first bytes, taken without sign, that differ; else 0.
function memcmp
also bcmp
mov $m3, $m0
mov $m0, $m15
brz $m2, 2f
add $m2, $m2, -1
1:
ldz8step $m4, $m15, $m3+=, 1
ldz8step $m5, $m15, $m1+=, 1
sub $m0, $m4, $m5
brnz $m0, 2f
brnzdec $m2, 1b
2:
br $m10
finish memcmp

function strlen
add $m1, $m0, 1
1:
ldz8step $m2, $m15, $m0+=, 1
brnz $m2, 1b
sub $m0, $m0, $m1
br $m10
finish strlen

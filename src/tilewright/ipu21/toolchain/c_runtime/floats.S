# Parts, remainders and roundings of floats for workers: float in $a0 (and $a1), result in $a0.
.include "numbers.S"
.worker

# What the compiler usually puts in place of the call.
.macro instruction_only name, operation:vararg
function \name
\operation
br $m10
finish \name
.endm

instruction_only expf, f32exp $a0, $a0
instruction_only exp2f, f32exp2 $a0, $a0
instruction_only logf, f32ln $a0, $a0
instruction_only log2f, f32log2 $a0, $a0
instruction_only sqrtf, f32sqrt $a0, $a0
instruction_only tanhf, f32tanh $a0, $a0
instruction_only fminf, f32min $a0, $a0, $a1
instruction_only fmaxf, f32max $a0, $a0, $a1
instruction_only rintf, f32int $a0, $a0, 0
instruction_only nearbyintf, f32int $a0, $a0, 0
instruction_only ceilf, f32int $a0, $a0, 1
instruction_only floorf, f32int $a0, $a0, 2
instruction_only truncf, f32int $a0, $a0, 3

function fabsf, 8
add $m11, $m11, -8
atom $m0, $a0
float_magnitude $m0
to_float $a0, $m0, 0
add $m11, $m11, 8
br $m10
finish fabsf

function copysignf, 8
add $m11, $m11, -8
atom $m0, $a0
atom $m1, $a1
float_magnitude $m0
sign_bit $m1, $m1
or $m0, $m0, $m1
to_float $a0, $m0, 0
add $m11, $m11, 8
br $m10
finish copysignf

# Halves away from zero: the magnitude rounded down, and one more if what was left is a half or above.
function roundf, 8
add $m11, $m11, -8
float_parts $m0, $m1, $a0
ldconst $m2, 0x4b000000
cmpult $m2, $m0, $m2
brz $m2, 1f
to_float $a0, $m0, 0
f32int $a1, $a0, 3
f32sub $a0, $a0, $a1
ldconst $a2, 0x3f000000
f32cmpge $a0, $a0, $a2
ldconst $a2, 0x3f800000
and $a0, $a0, $a2
f32add $a0, $a0, $a1
give_sign $m1, 0
1:
add $m11, $m11, 8
br $m10
finish roundf

# The exact rest of a division towards zero, as integers: the dividend's significand is reduced bit by bit.
function fmodf, 8
add $m11, $m11, -8
atom $m0, $a0
atom $m1, $a1
sign_bit $m2, $m0
float_magnitude $m0
float_magnitude $m1
or $m6, $m15, 0x7f800000
cmpult $m3, $m0, $m6
brz $m3, 8f
brz $m1, 8f
cmpult $m3, $m6, $m1
brnz $m3, 8f
cmpult $m3, $m0, $m1
brnz $m3, 9f
.macro take_apart bits, exponent
shr \exponent, \bits, 23
brnz \exponent, 1f
normalise_float \bits, \exponent
sub \exponent, 1, \exponent
bri 2f
1:
float_significand \bits
2:
.endm
take_apart $m0, $m3
take_apart $m1, $m4
sub $m3, $m3, $m4
3:
cmpult $m5, $m0, $m1
brnz $m5, 4f
sub $m0, $m0, $m1
4:
brz $m3, 5f
shl $m0, $m0, 1
add $m3, $m3, -1
bri 3b
5:
# The rest has the divisor's exponent until its leading one is in place.
brz $m0, 7f
clz $m3, $m0
add $m3, $m3, -8
add $m5, $m4, -1
max $m5, $m5, 0
min $m3, $m3, $m5
shl $m0, $m0, $m3
sub $m4, $m4, $m3
cmpslt $m5, $m4, 1
brz $m5, 6f
# The divisor was subnormal: so is the rest, with the exponent of 1.
sub $m5, 1, $m4
shr $m0, $m0, $m5
setzi $m4, 1
6:
add $m4, $m4, -1
shl $m4, $m4, 23
add $m0, $m0, $m4
7:
or $m0, $m0, $m2
to_float $a0, $m0, 0
9:
add $m11, $m11, 8
br $m10
8:
# Of infinity, by zero, or of what is no number.
f32mul $a0, $a0, $a1
f32sub $a0, $a0, $a0
f32div $a0, $a0, $a0
add $m11, $m11, 8
br $m10
finish fmodf

# Times 2^$m0, in three factors so that each is a float.
function ldexpf, 8
also scalbnf
also scalblnf
add $m11, $m11, -8
ldconst $m1, 381
min $m0, $m0, $m1
max $m0, $m0, -378
.rept 3
min $m1, $m0, 127
max $m1, $m1, -126
sub $m0, $m0, $m1
power_of_two $m1
to_float $a1, $m1, 0
f32mul $a0, $a0, $a1
.endr
add $m11, $m11, 8
br $m10
finish ldexpf

# The significand from 1/2 to 1; its exponent goes to the word at $m0.
function frexpf, 8
add $m11, $m11, -8
atom $m1, $a0
shl $m2, $m1, 1
shr $m2, $m2, 24
mov $m3, $m15
cmpeq $m4, $m2, 255
brnz $m4, 2f
brnz $m2, 1f
mov $m2, $m1
float_magnitude $m2
brz $m2, 2f
normalise_float $m2, $m3
sign_bit $m1, $m1
or $m1, $m1, $m2
sub $m2, 1, $m3
1:
add $m3, $m2, -126
or $m2, $m15, 0x7f800000
andc $m1, $m1, $m2
or $m1, $m1, 0x3f000000
2:
to_float $a0, $m1, 0
st32 $m3, $m0, $m15, 0
add $m11, $m11, 8
br $m10
finish frexpf

# What is behind the point, with the sign of the argument; the whole part goes to the word at $m0.
function modff, 8
add $m11, $m11, -8
f32int $a1, $a0, 3
st32 $a1, $m0, $m15, 0
atom $m1, $a0
atom $m2, $a1
cmpeq $m2, $m1, $m2
f32sub $a0, $a0, $a1
brz $m2, 1f
mov $a0, $azero
1:
atom $m2, $a0
float_magnitude $m2
sign_bit $m1, $m1
or $m2, $m2, $m1
to_float $a0, $m2, 0
add $m11, $m11, 8
br $m10
finish modff

# $a0 * $a1 + $a2: the product is exact as a double, and the sum is rounded to a double before it becomes a float.
function fmaf, 32
enter_link 8
st32 $a2, $m11, $m15, 1
st32 $a1, $m11, $m15, 2
call $m10, __extendsfdf2
keep 3
ld32 $a0, $m11, $m15, 2
call $m10, __extendsfdf2
same
first 3
call $m10, __muldf3
keep 3
ld32 $a0, $m11, $m15, 1
call $m10, __extendsfdf2
second 3
call $m10, __adddf3
call $m10, __truncdfsf2
leave_link 8
finish fmaf

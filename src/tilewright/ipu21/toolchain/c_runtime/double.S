# Double precision, which the machine has not: IEEE 754 binary64, rounded to nearest even, with subnormal numbers.
# A double is a pair of words, the low one first; every NaN that is made is 0x7ff80000:00000000 (assumed).
# Known: the compiler's doubles have 64 bits and go through these names.
.include "numbers.S"
.supervisor

# Upper word -> the significand's, with the leading one; subnormal numbers get the exponent 1.
.macro significand high, field
shl \high, \high, 12
shr \high, \high, 12
brz \field, 1f
or \high, \high, 0x100000
bri 2f
1:
setzi \field, 1
2:
.endm

# x = the zeros that high:low, not 0, begins with, less `above`.
.macro spare_bits x, high, low, above
brz \high, 1f
clz \x, \high
add \x, \x, -\above
bri 2f
1:
clz \x, \low
add \x, \x, 32 - \above
2:
.endm

# high:low, not 0, moved left until bit 52 is set, the exponent following.
.macro normalise high, low, field, x, y
spare_bits \x, \high, \low, 11
sub \field, \field, \x
shift_left \high, \low, \x, \y
.endm

.macro infinity
mov $m0, $m15
or $m1, $m7, 0x7ff00000
.endm

.macro zero
mov $m0, $m15
mov $m1, $m7
.endm

# $m7 sign in bit 31, $m8 exponent field, $m1:$m0 significand with three bits more, whose last tells of any lost.
# Bit 55 is set, unless the exponent is 1. Rounds, and returns from a function that entered with 8 words.
.section .text.__round_double, "ax", @progbits
__round_double:
cmpslt $m4, $m8, 2047
brnz $m4, 1f
infinity
leave 8
1:
cmpslt $m4, $m8, 1
brz $m4, 3f
sub $m5, 1, $m8
min $m5, $m5, 60
shift_right_sticky $m1, $m0, $m5, $m4
setzi $m8, 1
3:
and $m4, $m0, 7
shift_right_by $m1, $m0, 3, $m5
add $m8, $m8, -1
shl $m8, $m8, 20
add $m1, $m1, $m8
rounds_up $m4, $m0, 4, $m5
add_word $m1, $m0, $m4
or $m1, $m1, $m7
leave 8

function __subdf3, 32
or $m4, $m15, 0x80000000
xor $m3, $m3, $m4
bri __adddf3
finish __subdf3

function __adddf3, 32
enter 8
# The larger magnitude first.
shl $m4, $m1, 1
shl $m5, $m3, 1
branch_not_below 2f, $m4, $m0, $m5, $m2, $m6
mov $m4, $m0
mov $m5, $m1
mov $m0, $m2
mov $m1, $m3
mov $m2, $m4
mov $m3, $m5
2:
xor $m6, $m1, $m3
sign_bit $m7, $m1
exponent_field $m8, $m1
exponent_field $m9, $m3
cmpeq $m4, $m8, 2047
brz $m4, 4f
# The larger is no finite number. If both are infinite their signs must be the same.
fraction_bits $m4, $m1, $m0
brnz $m4, 3f
brpos $m6, 9f
cmpeq $m4, $m9, 2047
brz $m4, 9f
3:
nan
9:
leave 8
4:
significand $m1, $m8
significand $m3, $m9
shift_left_by $m1, $m0, 3, $m4
shift_left_by $m3, $m2, 3, $m4
sub $m5, $m8, $m9
min $m5, $m5, 60
shift_right_sticky $m3, $m2, $m5, $m4
brneg $m6, 6f
add_pair $m1, $m0, $m3, $m2, $m4
shr $m4, $m1, 24
brz $m4, 5f
setzi $m5, 1
shift_right_sticky $m1, $m0, $m5, $m4
add $m8, $m8, 1
5:
bri __round_double
6:
subtract_pair $m1, $m0, $m3, $m2, $m4
or $m4, $m0, $m1
brnz $m4, 7f
mov $m7, $m15
bri __round_zero
7:
# The leading one moves to bit 55, as far as the exponent allows.
spare_bits $m5, $m1, $m0, 8
add $m4, $m8, -1
min $m5, $m5, $m4
sub $m8, $m8, $m5
shift_left $m1, $m0, $m5, $m4
bri __round_double
finish __adddf3

# A zero with the sign in $m7, returned as by __round_double.
.section .text.__round_zero, "ax", @progbits
__round_zero:
zero
leave 8

# What multiplication and division begin with: the sign, and both exponents.
.macro begin_product
enter 8
xor $m7, $m1, $m3
sign_bit $m7, $m7
exponent_field $m8, $m1
exponent_field $m9, $m3
.endm

# Branch if the double is not a number; field is its exponent.
.macro branch_nan target, high, low, field, x
cmpeq \x, \field, 2047
brz \x, 1f
fraction_bits \x, \high, \low
brnz \x, \target
1:
.endm

function __muldf3, 32
begin_product
branch_nan .Lmul_nan, $m1, $m0, $m8, $m4
branch_nan .Lmul_nan, $m3, $m2, $m9, $m4
max $m4, $m8, $m9
any_bits $m5, $m1, $m0
any_bits $m6, $m3, $m2
cmpeq $m4, $m4, 2047
brz $m4, 1f
# An infinity: by zero it is nothing.
brz $m5, .Lmul_nan
brz $m6, .Lmul_nan
infinity
leave 8
.Lmul_nan:
nan
leave 8
1:
brz $m5, 2f
brnz $m6, 3f
2:
bri __round_zero
3:
significand $m1, $m8
significand $m3, $m9
normalise $m1, $m0, $m8, $m4, $m5
normalise $m3, $m2, $m9, $m4, $m5
add $m8, $m8, $m9
add $m8, $m8, -1023
# Both moved up to bit 63; the upper half of the product then has its leading one in bit 62 or 63.
setzi $m5, 11
shift_left $m1, $m0, $m5, $m4
setzi $m5, 11
shift_left $m3, $m2, $m5, $m4
multiply_high $m9, $m0, $m2, $m4, $m5, $m6
mul $m4, $m0, $m2
st32 $m4, $m11, $m15, 3
mul $m4, $m1, $m2
add $m9, $m9, $m4
cmpult $m5, $m9, $m4
mul $m4, $m0, $m3
add $m9, $m9, $m4
cmpult $m6, $m9, $m4
add $m5, $m5, $m6
st32 $m5, $m11, $m15, 4
ld32 $m4, $m11, $m15, 3
or $m9, $m9, $m4
st32 $m9, $m11, $m15, 3
multiply_high $m9, $m1, $m2, $m4, $m5, $m6
multiply_high $m0, $m0, $m3, $m4, $m5, $m6
mul $m2, $m1, $m3
multiply_high $m1, $m1, $m3, $m4, $m5, $m6
ld32 $m5, $m11, $m15, 4
add $m0, $m0, $m9
cmpult $m4, $m0, $m9
add $m0, $m0, $m2
cmpult $m6, $m0, $m2
add $m4, $m4, $m6
add $m0, $m0, $m5
cmpult $m6, $m0, $m5
add $m4, $m4, $m6
add $m1, $m1, $m4
ld32 $m3, $m11, $m15, 3
cmpne $m3, $m3, $m15
setzi $m5, 7
shr $m4, $m1, 31
add $m8, $m8, $m4
add $m5, $m5, $m4
shift_right_sticky $m1, $m0, $m5, $m4
or $m0, $m0, $m3
bri __round_double
finish __muldf3

function __divdf3, 32
begin_product
branch_nan .Ldiv_nan, $m1, $m0, $m8, $m4
branch_nan .Ldiv_nan, $m3, $m2, $m9, $m4
any_bits $m5, $m1, $m0
any_bits $m6, $m3, $m2
cmpeq $m4, $m8, 2047
brz $m4, 1f
cmpeq $m4, $m9, 2047
brnz $m4, .Ldiv_nan
.Ldiv_infinity:
infinity
leave 8
.Ldiv_nan:
nan
leave 8
1:
brnz $m6, 2f
brz $m5, .Ldiv_nan
bri .Ldiv_infinity
2:
brz $m5, 3f
cmpeq $m4, $m9, 2047
brz $m4, 4f
3:
bri __round_zero
4:
significand $m1, $m8
significand $m3, $m9
normalise $m1, $m0, $m8, $m4, $m5
normalise $m3, $m2, $m9, $m4, $m5
sub $m8, $m8, $m9
add $m8, $m8, 1023
# The dividend must be the larger, so that the first bit of the quotient is set.
branch_not_below 6f, $m1, $m0, $m3, $m2, $m4
shift_left_by $m1, $m0, 1, $m4
add $m8, $m8, -1
6:
mov $m4, $m15
mov $m5, $m15
setzi $m6, 55
7:
shift_left_by $m5, $m4, 1, $m9
branch_below 8f, $m1, $m0, $m3, $m2, $m9
subtract_pair $m1, $m0, $m3, $m2, $m9
add $m4, $m4, 1
8:
shift_left_by $m1, $m0, 1, $m9
brnzdec $m6, 7b
or $m0, $m0, $m1
cmpne $m0, $m0, $m15
or $m0, $m0, $m4
mov $m1, $m5
bri __round_double
finish __divdf3

# Digit by digit: two bits of the significand $m3:$m2 enter the remainder $m5:$m4 for one of the root $m1:$m0.
function sqrt, 32
enter 8
any_bits $m4, $m1, $m0
brz $m4, 2f
exponent_field $m8, $m1
cmpeq $m4, $m8, 2047
brz $m4, 3f
fraction_bits $m4, $m1, $m0
brnz $m4, 1f
brpos $m1, 2f
1:
nan
2:
leave 8
3:
brneg $m1, 1b
significand $m1, $m8
normalise $m1, $m0, $m8, $m4, $m5
# Even powers of 2, the root's exponent being half of them; the leading pair of bits moves to the top.
and $m4, $m8, 1
add $m8, $m8, 1023
shr $m8, $m8, 1
st32 $m8, $m11, $m15, 3
sub $m4, 11, $m4
shift_left $m1, $m0, $m4, $m5
mov $m2, $m0
mov $m3, $m1
mov $m0, $m15
mov $m1, $m15
mov $m4, $m15
mov $m5, $m15
setzi $m8, 55
4:
shr $m9, $m4, 30
shl $m5, $m5, 2
or $m5, $m5, $m9
shift_in $m4, $m3, 2, $m9
shift_left_by $m3, $m2, 2, $m9
shl $m7, $m1, 2
shr $m9, $m0, 30
or $m7, $m7, $m9
shl $m6, $m0, 2
or $m6, $m6, 1
shift_left_by $m1, $m0, 1, $m9
branch_below 6f, $m5, $m4, $m7, $m6, $m9
subtract_pair $m5, $m4, $m7, $m6, $m9
or $m0, $m0, 1
6:
brnzdec $m8, 4b
or $m4, $m4, $m5
cmpne $m4, $m4, $m15
or $m0, $m0, $m4
mov $m7, $m15
ld32 $m8, $m11, $m15, 3
bri __round_double
finish sqrt

# x = 1 if the double is not a number; $m6 holds the upper word of infinity, moved left by one.
.macro not_a_number x, high, low, y
shl \x, \high, 1
cmpne \y, \low, $m15
or \x, \x, \y
cmpult \x, $m6, \x
.endm

# $m0 = -1, 0 or 1 as the first is smaller, equal or larger, or `unordered`.
.macro compare unordered
or $m6, $m15, 0xffe00000
not_a_number $m4, $m1, $m0, $m5
brnz $m4, 1f
not_a_number $m4, $m3, $m2, $m5
brz $m4, 2f
1:
add $m0, $m15, \unordered
br $m10
2:
or $m4, $m1, $m3
shl $m4, $m4, 1
or $m4, $m4, $m0
or $m4, $m4, $m2
brnz $m4, 3f
mov $m0, $m15
br $m10
3:
# Words whose order is that of the numbers: the magnitude is turned round if the first is negative.
xor $m4, $m1, $m3
brpos $m4, 4f
shrs $m0, $m1, 31
or $m0, $m0, 1
br $m10
4:
shrs $m5, $m1, 31
cmpult $m4, $m1, $m3
cmpult $m6, $m3, $m1
sub $m6, $m6, $m4
brnz $m6, 5f
cmpult $m4, $m0, $m2
cmpult $m6, $m2, $m0
sub $m6, $m6, $m4
5:
xor $m6, $m6, $m5
sub $m0, $m6, $m5
br $m10
.endm

function __eqdf2
also __nedf2
also __ltdf2
also __ledf2
also __cmpdf2
compare 1
finish __eqdf2

function __gtdf2
also __gedf2
compare -1
finish __gtdf2

function __unorddf2
or $m6, $m15, 0xffe00000
not_a_number $m4, $m1, $m0, $m5
not_a_number $m0, $m3, $m2, $m5
or $m0, $m0, $m4
br $m10
finish __unorddf2

function __negdf2
or $m2, $m15, 0x80000000
xor $m1, $m1, $m2
br $m10
finish __negdf2

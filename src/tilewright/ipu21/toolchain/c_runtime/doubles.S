# Functions of doubles, out of the operations of double.S. A double is a pair of words, the low one first.
.include "numbers.S"
.supervisor

# A constant as the second argument.
.macro second_constant high, low=0
ldconst $m2, \low
ldconst $m3, \high
.endm

.macro plus
call $m10, __adddf3
.endm

.macro minus
call $m10, __subdf3
.endm

.macro times
call $m10, __muldf3
.endm

# $m1:$m0 times 2 to the power of an integer.
.macro times_power_of_two exponent
add $m4, \exponent, 1023
shl $m3, $m4, 20
mov $m2, $m15
times
.endm

# 1 as the first argument, and a branch if that is 1; the branch loses $m4.
.macro one
mov $m0, $m15
ldconst $m1, 0x3ff00000
.endm

.macro branch_one target
ldconst $m4, 0x3ff00000
xor $m4, $m4, $m1
or $m4, $m4, $m0
brz $m4, \target
.endm

# Frame of 16 words: 0 to 3 for what the caller keeps and the link, the others for doubles.
.macro enter_calls
enter 16
st32 $m10, $m11, $m15, 3
.endm

.macro leave_calls
ld32 $m10, $m11, $m15, 3
leave 16
.endm

.equ NEVER, 0
.equ AWAY, 1
.equ HALF_AWAY, 2
.equ HALF_EVEN, 3

function trunc
setzi $m2, NEVER
bri __double_integer
finish trunc

function floor
shr $m2, $m1, 31
bri __double_integer
finish floor

function ceil
shr $m2, $m1, 31
sub $m2, 1, $m2
bri __double_integer
finish ceil

function round
setzi $m2, HALF_AWAY
bri __double_integer
finish round

function rint
also nearbyint
setzi $m2, HALF_EVEN
bri __double_integer
finish rint

# $m1:$m0 to an integer; $m2 tells when a fraction makes the magnitude larger.
.section .text.__double_integer, "ax", @progbits
__double_integer:
exponent_field $m3, $m1
add $m3, $m3, -1023
cmpslt $m4, $m3, 52
brz $m4, 5f
brneg $m3, 6f
# $m5:$m6 is the lowest bit that stays; what is added below it is $m4:$m3.
sub $m4, 52, $m3
mov $m5, $m15
setzi $m6, 1
shift_left $m5, $m6, $m4, $m3
brz $m2, 4f
cmpeq $m3, $m2, AWAY
brnz $m3, 1f
shr $m4, $m5, 1
shr $m3, $m6, 1
shl $m6, $m5, 31
or $m3, $m3, $m6
cmpeq $m2, $m2, HALF_AWAY
shl $m6, $m3, 1
brnz $m2, 3f
and $m2, $m0, $m6
brnz $m2, 3f
and $m2, $m1, $m5
brnz $m2, 3f
bri 2f
1:
mov $m4, $m5
mov $m3, $m6
2:
cmpeq $m2, $m3, 0
sub $m4, $m4, $m2
add $m3, $m3, -1
3:
add_pair $m1, $m0, $m4, $m3, $m2
4:
negate $m5, $m6, $m3
and $m0, $m0, $m6
and $m1, $m1, $m5
5:
br $m10
6:
# Below 1: 0 or 1 with the sign
any_bits $m4, $m1, $m0
brz $m4, 5b
fraction_bits $m5, $m1, $m0
sign_bit $m1, $m1
mov $m0, $m15
brz $m2, 5b
cmpeq $m4, $m2, AWAY
brnz $m4, 7f
add $m3, $m3, 1
brnz $m3, 5b
cmpeq $m4, $m2, HALF_AWAY
brnz $m4, 7f
brz $m5, 5b
7:
or $m1, $m1, 0x3ff00000
br $m10

# A polynomial of $m1:$m0: coefficients at $m2, the highest power's first, $m3 after that one.
.section .text.__double_polynomial, "ax", @progbits
__double_polynomial:
enter_calls
mov $m7, $m0
mov $m8, $m1
mov $m9, $m2
st32 $m3, $m11, $m15, 4
ld32step $m0, $m15, $m9+=, 1
ld32step $m1, $m15, $m9+=, 1
1:
mov $m2, $m7
mov $m3, $m8
times
ld32step $m2, $m15, $m9+=, 1
ld32step $m3, $m15, $m9+=, 1
plus
ld32 $m4, $m11, $m15, 4
add $m4, $m4, -1
st32 $m4, $m11, $m15, 4
brnz $m4, 1b
leave_calls

.section .rodata.__double_tables, "a", @progbits
.p2align 2
# 1 / n!
.Ltable_exp:
.quad 0x3de6124613a86d09
.quad 0x3e21eed8eff8d898
.quad 0x3e5ae64567f544e4
.quad 0x3e927e4fb7789f5c
.quad 0x3ec71de3a556c734
.quad 0x3efa01a01a01a01a
.quad 0x3f2a01a01a01a01a
.quad 0x3f56c16c16c16c17
.quad 0x3f81111111111111
.quad 0x3fa5555555555555
.quad 0x3fc5555555555555
.quad 0x3fe0000000000000
.quad 0x3ff0000000000000
.quad 0x3ff0000000000000
# 2 / (2 n + 1)
.Ltable_log:
.quad 0x3fb642c8590b2164
.quad 0x3fb8618618618618
.quad 0x3fbaf286bca1af28
.quad 0x3fbe1e1e1e1e1e1e
.quad 0x3fc1111111111111
.quad 0x3fc3b13b13b13b14
.quad 0x3fc745d1745d1746
.quad 0x3fcc71c71c71c71c
.quad 0x3fd2492492492492
.quad 0x3fd999999999999a
.quad 0x3fe5555555555555
.quad 0x0000000000000000

# 2^k e^r, where |r| is at most half of ln 2
function exp, 64
enter_calls
shl $m4, $m1, 1
shr $m4, $m4, 1
ldconst $m5, 0x40890000
cmpult $m6, $m4, $m5
brnz $m6, 2f
ldconst $m3, 0x7ff00000
cmpult $m6, $m3, $m4
brnz $m6, 3f
xor $m4, $m4, $m3
brnz $m4, 1f
brnz $m0, 3f
1:
# 800 is as good as anything beyond.
mov $m0, $m15
sign_bit $m4, $m1
or $m1, $m4, $m5
2:
mov $m7, $m0
mov $m8, $m1
second_constant 0x3ff71547, 0x652b82fe
times
setzi $m2, HALF_EVEN
call $m10, __double_integer
call $m10, __fixdfsi
mov $m9, $m0
call $m10, __floatsidf
keep 4
second_constant 0xbfe62e42, 0xfee00000
times
mov $m2, $m7
mov $m3, $m8
plus
keep 6
first 4
second_constant 0xbdea39ef, 0x35793c76
times
second 6
plus
setzi $m2, .Ltable_exp
setzi $m3, 13
call $m10, __double_polynomial
# 2^k in two steps, neither of which leaves the exponents there are
shrs $m4, $m9, 1
sub $m9, $m9, $m4
times_power_of_two $m4
times_power_of_two $m9
3:
leave_calls
finish exp

# k ln 2 + ln m with m from sqrt(1/2) to sqrt(2): f = m - 1, s = f / (2 + f), ln m = f - (f^2/2 - s (f^2/2 + r(s^2)))
function log, 64
enter_calls
shl $m4, $m1, 1
shr $m9, $m4, 21
or $m4, $m4, $m0
brnz $m4, 1f
ldconst $m1, 0xfff00000
leave_calls
1:
cmpeq $m4, $m9, 2047
brz $m4, 2f
fraction_bits $m4, $m1, $m0
brnz $m4, 3f
brpos $m1, 3f
2:
brpos $m1, 4f
nan
3:
leave_calls
4:
shl $m1, $m1, 12
shr $m1, $m1, 12
brz $m9, 5f
or $m1, $m1, 0x100000
bri 7f
5:
clz $m4, $m1
add $m4, $m4, -11
brnz $m1, 6f
clz $m4, $m0
add $m4, $m4, 21
6:
sub $m9, 1, $m4
shift_left $m1, $m0, $m4, $m5
7:
add $m9, $m9, -1023
ldconst $m4, 0x16a09e
cmpult $m4, $m4, $m1
add $m9, $m9, $m4
shl $m4, $m4, 20
sub $m1, $m1, $m4
ldconst $m4, 0x3fe00000
add $m1, $m1, $m4
second_constant 0xbff00000
plus
mov $m7, $m0
mov $m8, $m1
second_constant 0x40000000
plus
same
mov $m0, $m7
mov $m1, $m8
call $m10, __divdf3
keep 4
same
times
setzi $m2, .Ltable_log
setzi $m3, 11
call $m10, __double_polynomial
keep 6
mov $m0, $m7
mov $m1, $m8
same
times
second_constant 0x3fe00000
times
keep 8
second 6
plus
second 4
times
keep 4
mov $m0, $m9
call $m10, __floatsidf
keep 6
second_constant 0x3dea39ef, 0x35793c76
times
second 4
plus
same
first 8
minus
mov $m2, $m7
mov $m3, $m8
minus
keep 4
first 6
second_constant 0x3fe62e42, 0xfee00000
times
second 4
minus
leave_calls
finish log

# Whole powers up to 64 by multiplication, others as e^(y ln |x|), and the sign of odd ones.
function pow, 64
enter_calls
keep 4
st32 $m2, $m11, $m15, 6
st32 $m3, $m11, $m15, 7
# y = 0 and x = 1 give 1, whatever the other is.
any_bits $m4, $m3, $m2
brz $m4, .Lpow_one
branch_one .Lpow_one
call $m10, __unorddf2
brnz $m0, .Lpow_nan
# $m9: 0 if y is no whole number, 1 if it is odd, 2 if it is even. Half of an even one is whole.
mov $m9, $m15
first 6
setzi $m2, NEVER
call $m10, __double_integer
second 6
call $m10, __nedf2
brnz $m0, 1f
setzi $m9, 2
first 6
second_constant 0x3fe00000
times
keep 8
setzi $m2, NEVER
call $m10, __double_integer
second 8
call $m10, __nedf2
cmpne $m0, $m0, $m15
sub $m9, $m9, $m0
1:
# A finite negative x needs a whole y.
ld32 $m8, $m11, $m15, 5
brpos $m8, 2f
brnz $m9, 2f
first 4
call $m10, __double_special
brz $m0, .Lpow_nan
2:
first 4
float_magnitude $m1
keep 4
brz $m9, .Lpow_general
first 6
second_constant 0x40500000
call $m10, __gtdf2
cmpslt $m0, $m15, $m0
brnz $m0, .Lpow_general
first 6
second_constant 0xc0500000
call $m10, __ltdf2
brneg $m0, .Lpow_general
first 6
call $m10, __fixdfsi
mov $m7, $m0
brpos $m7, 3f
sub $m7, $m15, $m7
one
second 4
call $m10, __divdf3
keep 4
3:
one
keep 8
4:
and $m4, $m7, 1
brz $m4, 5f
first 8
second 4
times
keep 8
5:
shr $m7, $m7, 1
brz $m7, 6f
first 4
same
times
keep 4
bri 4b
6:
first 8
.Lpow_sign:
cmpeq $m4, $m9, 1
brz $m4, 7f
sign_bit $m4, $m8
or $m1, $m1, $m4
7:
leave_calls
.Lpow_general:
# |x| = 1 has the logarithm 0, and 0 times an infinite y would be no number.
first 4
branch_one .Lpow_sign
call $m10, log
second 6
times
call $m10, exp
bri .Lpow_sign
.Lpow_one:
one
leave_calls
.Lpow_nan:
nan
leave_calls
finish pow

# $m0 = 1 if $m1:$m0 is a zero or infinite, for which no sign matters in a power that is not whole; else 0.
.section .text.__double_special, "ax", @progbits
__double_special:
shl $m1, $m1, 1
or $m2, $m0, $m1
ldconst $m3, 0xffe00000
xor $m1, $m1, $m3
or $m1, $m1, $m0
cmpeq $m2, $m2, $m15
cmpeq $m0, $m1, $m15
or $m0, $m0, $m2
br $m10

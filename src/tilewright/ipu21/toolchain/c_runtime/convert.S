# Conversions between doubles, floats and integers. To an integer: towards zero, and what does not fit becomes the
# nearest that does; not a number becomes what its sign would (C leaves both open; assumed).
# Floats are in $a0 for workers and in $m0 for the supervisor, which has no other registers (known).
.include "numbers.S"

# $m12 is zero for the supervisor and never for a worker (known).
.worker
.macro float_argument
brz $m12, 1f
atom $m0, $a0
1:
.endm

.macro float_result
brz $m12, 1f
add $m11, $m11, -8
st32 $m0, $m11, $m15, 0
ld32 $a0, $m11, $m15, 0
add $m11, $m11, 8
1:
br $m10
.endm

# Significand $m0 with its leading one in bit 31 and whether bits were lost in bit 0, exponent field $m1, sign $m2 in
# bit 31 -> float in $m0, rounded to nearest even. $m3 and $m4 are lost.
.macro round_single
cmpslt $m3, $m1, 255
brnz $m3, 1f
or $m0, $m2, 0x7f800000
bri 4f
1:
cmpslt $m3, $m1, 1
brz $m3, 2f
sub $m3, 1, $m1
min $m3, $m3, 31
sub $m4, 32, $m3
shl $m4, $m0, $m4
cmpne $m4, $m4, $m15
shr $m0, $m0, $m3
or $m0, $m0, $m4
setzi $m1, 1
2:
and $m3, $m0, 0xff
shr $m0, $m0, 8
rounds_up $m3, $m0, 128, $m4
add $m1, $m1, -1
shl $m1, $m1, 23
add $m0, $m0, $m1
add $m0, $m0, $m3
or $m0, $m0, $m2
4:
.endm

# Float $m0 -> double $m1:$m0; $m2..$m4 are lost.
.macro widen_single
sign_bit $m2, $m0
shl $m3, $m0, 1
shr $m1, $m3, 1
shr $m3, $m3, 24
brz $m3, 1f
cmpeq $m4, $m3, 255
brnz $m4, 2f
shl $m0, $m1, 29
shr $m1, $m1, 3
ldconst $m3, 896 << 20
add $m1, $m1, $m3
bri 3f
2:
# Infinite or not a number: the exponent field is all ones.
shl $m0, $m1, 29
shr $m1, $m1, 3
or $m1, $m1, 0x7ff00000
bri 3f
1:
mov $m0, $m15
brz $m1, 3f
normalise_float $m1, $m3
sub $m3, 896, $m3
shl $m3, $m3, 20
shl $m0, $m1, 29
shr $m1, $m1, 3
add $m1, $m1, $m3
3:
or $m1, $m1, $m2
.endm

function __extendsfdf2
float_argument
widen_single
br $m10
finish __extendsfdf2

# Double $m1:$m0 -> float $m0; $m2..$m4 are lost.
.macro narrow_double
sign_bit $m2, $m1
exponent_field $m3, $m1
cmpeq $m4, $m3, 2047
brz $m4, 5f
fraction_bits $m4, $m1, $m0
or $m0, $m2, 0x7f800000
brz $m4, 6f
or $m0, $m0, 0x400000
bri 6f
5:
shl $m4, $m1, 11
or $m4, $m4, 0x80000000
add $m1, $m3, -896
shr $m3, $m0, 21
or $m4, $m4, $m3
shl $m0, $m0, 11
cmpne $m0, $m0, $m15
or $m0, $m0, $m4
round_single
6:
.endm

function __truncdfsf2, 8
narrow_double
float_result
finish __truncdfsf2

.supervisor

function __floatsidf
sign_bit $m4, $m0
magnitude $m0, $m2
bri __magnitude_to_double
finish __floatsidf

function __floatunsidf
mov $m4, $m15
bri __magnitude_to_double
finish __floatunsidf

# $m0 with sign $m4 in bit 31.
.section .text.__magnitude_to_double, "ax", @progbits
__magnitude_to_double:
mov $m1, $m15
brz $m0, 1f
clz $m2, $m0
shl $m0, $m0, $m2
sub $m2, 1023 + 30, $m2
shl $m2, $m2, 20
shr $m1, $m0, 11
add $m1, $m1, $m2
shl $m0, $m0, 21
or $m1, $m1, $m4
1:
br $m10

# $m1:$m0 without sign, not 0, moved left until bit 63 is set; $m5 is by how many bits.
.macro normalise_long
mov $m5, $m15
brnz $m1, 1f
mov $m1, $m0
mov $m0, $m15
setzi $m5, 32
1:
clz $m3, $m1
add $m5, $m5, $m3
sub $m4, 32, $m3
shr $m4, $m0, $m4
shl $m0, $m0, $m3
shl $m1, $m1, $m3
or $m1, $m1, $m4
.endm

function __floatdidf
sign_bit $m6, $m1
negate_if $m1, $m1, $m0, $m2
bri __long_to_double
finish __floatdidf

function __floatundidf
mov $m6, $m15
bri __long_to_double
finish __floatundidf

# $m1:$m0 with sign $m6 in bit 31.
.section .text.__long_to_double, "ax", @progbits
__long_to_double:
or $m2, $m0, $m1
brz $m2, 2f
normalise_long
sub $m5, 1023 + 62, $m5
shl $m5, $m5, 20
# The lower 11 bits are rounded away.
setzi $m2, 0x7ff
and $m2, $m0, $m2
shift_right_by $m1, $m0, 11, $m3
add $m1, $m1, $m5
rounds_up $m2, $m0, 1024, $m3
add_word $m1, $m0, $m2
or $m1, $m1, $m6
2:
br $m10

.worker

function __floatdisf, 8
sign_bit $m6, $m1
negate_if $m1, $m1, $m0, $m2
bri __long_to_single
finish __floatdisf

function __floatundisf, 8
mov $m6, $m15
bri __long_to_single
finish __floatundisf

.section .text.__long_to_single, "ax", @progbits
__long_to_single:
or $m2, $m0, $m1
brz $m2, 7f
normalise_long
cmpne $m0, $m0, $m15
or $m0, $m0, $m1
sub $m1, 127 + 63, $m5
mov $m2, $m6
round_single
7:
float_result

# Double $m1:$m0 -> $m1:$m0 = its significand with the leading one in bit 63, $m2 how far right the integer is from
# there if it is below 2^64 (else negative), $m3 the sign. Numbers below one have at least 64.
.macro integer_bits
shrs $m3, $m1, 31
exponent_field $m2, $m1
sub $m2, 1023 + 63, $m2
shift_in $m1, $m0, 11, $m4
or $m1, $m1, 0x80000000
shl $m0, $m0, 11
.endm

.supervisor

function __fixdfsi
integer_bits
add $m2, $m2, -32
min $m4, $m2, 32
shr $m0, $m1, $m4
cmpslt $m4, $m2, 1
brnz $m4, 1f
xor $m0, $m0, $m3
sub $m0, $m0, $m3
br $m10
1:
add $m0, $m15, -1
shr $m0, $m0, 1
xor $m0, $m0, $m3
br $m10
finish __fixdfsi

function __fixunsdfsi
integer_bits
add $m2, $m2, -32
min $m4, $m2, 32
shr $m0, $m1, $m4
brpos $m2, 1f
add $m0, $m15, -1
1:
andc $m0, $m0, $m3
br $m10
finish __fixunsdfsi

# $m1:$m0 shifted right by $m2, 0 or more; $m4 and $m5 are lost.
.macro shift_down
min $m2, $m2, 64
cmpult $m4, $m2, 32
brnz $m4, 1f
mov $m0, $m1
mov $m1, $m15
add $m2, $m2, -32
1:
sub $m4, 32, $m2
shr $m0, $m0, $m2
shl $m4, $m1, $m4
or $m0, $m0, $m4
shr $m1, $m1, $m2
.endm

.macro fix_signed
cmpslt $m4, $m2, 1
brnz $m4, 2f
shift_down
brz $m3, 3f
negate $m1, $m0, $m4
3:
br $m10
2:
add $m0, $m15, -1
shr $m1, $m0, 1
xor $m0, $m0, $m3
xor $m1, $m1, $m3
br $m10
.endm

.macro fix_unsigned
brneg $m2, 2f
shift_down
bri 3f
2:
add $m0, $m15, -1
mov $m1, $m0
3:
andc $m0, $m0, $m3
andc $m1, $m1, $m3
br $m10
.endm

function __fixdfdi
integer_bits
fix_signed
finish __fixdfdi

function __fixunsdfdi
integer_bits
fix_unsigned
finish __fixunsdfdi

.worker

function __fixsfdi
float_argument
widen_single
integer_bits
fix_signed
finish __fixsfdi

function __fixunssfdi
float_argument
widen_single
integer_bits
fix_unsigned
finish __fixunssfdi

.supervisor

# The same between registers of the supervisor, for `single.S`.
function __single_to_double
widen_single
br $m10
finish __single_to_double

function __double_to_single
narrow_double
br $m10
finish __double_to_single

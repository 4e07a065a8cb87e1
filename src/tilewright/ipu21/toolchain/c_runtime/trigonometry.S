# Sines and their inverses for workers: float in $a0 (and $a1), result in $a0. The coefficients are those of the
# smallest greatest relative error, computed for these ranges.
.include "numbers.S"
.worker

.section .rodata.__two_over_pi, "a", @progbits
.p2align 2
# A word of zeros, then the first 224 bits of 2/pi.
__two_over_pi:
.long 0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab

# $a0 -> $a0 = the rest after $m0 quarter turns, at most pi / 4. Needs a frame whose words 4 and 5 are free and in
# which $m7..$m9 are kept; everything else but $a4 to $a7 is lost.
.section .text.__quarter_turns, "ax", @progbits
__quarter_turns:
atom $m0, $a0
float_magnitude $m0
ldconst $m1, 0x3f490fdb
cmpult $m2, $m1, $m0
brnz $m2, 1f
mov $m0, $m15
br $m10
1:
ldconst $m1, 0x44480000
cmpult $m2, $m1, $m0
brnz $m2, 2f
# Up to 800: pi / 2 in four parts, of which three have so few bits that their products are exact.
ldconst $a1, 0x3f22f983
f32mul $a1, $a0, $a1
f32int $a1, $a1, 0
.irp part, 0x3fc90800, 0x397b5000, 0x32888000, 0x2c34611a
ldconst $a2, \part
f32mul $a2, $a1, $a2
f32sub $a0, $a0, $a2
.endr
f32toi32 $a1, $a1
atom $m0, $a1
br $m10
2:
ldconst $m1, 0x7f800000
cmpult $m2, $m0, $m1
brnz $m2, 3f
# Of infinity there is none.
f32sub $a0, $a0, $a0
mov $m0, $m15
br $m10
3:
# The significand times those 96 bits of 2/pi that can make a difference; whole turns fall off the top.
shr $m1, $m0, 23
add $m1, $m1, 30 - 150
float_significand $m0
shr $m2, $m1, 5
shl $m2, $m2, 2
and $m1, $m1, 31
setzi $m3, __two_over_pi
add $m2, $m2, $m3
ld32 $m3, $m2, $m15, 0
ld32 $m4, $m2, $m15, 1
ld32 $m5, $m2, $m15, 2
ld32 $m6, $m2, $m15, 3
sub $m2, 32, $m1
.macro shifted word, next
shl \word, \word, $m1
shr $m7, \next, $m2
or \word, \word, $m7
.endm
shifted $m3, $m4
shifted $m4, $m5
shifted $m5, $m6
multiply_high $m6, $m0, $m5, $m1, $m2, $m7
mul $m5, $m0, $m4
add $m6, $m6, $m5
cmpult $m8, $m6, $m5
multiply_high $m5, $m0, $m4, $m1, $m2, $m7
mul $m3, $m0, $m3
add $m5, $m5, $m3
add $m5, $m5, $m8
or $m1, $m15, 0x20000000
add $m1, $m5, $m1
shr $m0, $m1, 30
# What is left of a quarter turn, as a fraction of 64 bits with a sign.
shift_left_by $m5, $m6, 2, $m1
sign_bit $m3, $m5
negate_if $m5, $m5, $m6, $m1
atom $m2, $a0
brpos $m2, 5f
sub $m0, $m15, $m0
or $m1, $m15, 0x80000000
xor $m3, $m3, $m1
5:
setzi $m2, 127
brnz $m5, 6f
mov $m5, $m6
mov $m6, $m15
setzi $m2, 127 - 32
6:
clz $m1, $m5
sub $m2, $m2, $m1
shl $m5, $m5, $m1
sub $m1, 32, $m1
shr $m6, $m6, $m1
or $m5, $m5, $m6
shl $m2, $m2, 23
or $m2, $m2, $m3
to_float $a0, $m5, 4
to_float $a1, $m2, 5
f32fromui32 $a0, $a0
f32mul $a0, $a0, $a1
ldconst $a1, 0x2fc90fdb
f32mul $a0, $a0, $a1
br $m10

# $a1 = sin $a0 and $a2 = cos $a0 for at most pi / 4; $a3 is lost.
.macro sine
f32mul $a2, $a0, $a0
ldconst $a1, 0xb94ca527
times_plus $a1, $a2, 0x3c0883aa, $a3
times_plus $a1, $a2, 0xbe2aaaa3, $a3
f32mul $a1, $a1, $a2
f32mul $a1, $a1, $a0
f32add $a1, $a1, $a0
.endm

.macro cosine
f32mul $a3, $a0, $a0
ldconst $a2, 0x37ccff34
times_plus $a2, $a3, 0xbab6063f, $a4
times_plus $a2, $a3, 0x3d2aaaa5, $a4
f32mul $a2, $a2, $a3
ldconst $a4, 0x3f000000
f32sub $a2, $a2, $a4
f32mul $a2, $a2, $a3
ldconst $a4, 0x3f800000
f32add $a2, $a2, $a4
.endm

.macro begin_turns
enter 8
st32 $m10, $m11, $m15, 3
call $m10, __quarter_turns
ld32 $m10, $m11, $m15, 3
.endm

# The sine `ahead` quarter turns from where the argument is.
.macro wave ahead
begin_turns
add $m0, $m0, \ahead
and $m1, $m0, 1
brnz $m1, 1f
sine
mov $a0, $a1
bri 2f
1:
cosine
mov $a0, $a2
2:
and $m1, $m0, 2
brz $m1, 3f
ldconst $a1, 0xbf800000
f32mul $a0, $a0, $a1
3:
leave 8
.endm

function sinf, 32
same_below 0x39800000
wave 0
finish sinf

function cosf, 32
wave 1
finish cosf

function tanf, 32
same_below 0x39800000
begin_turns
sine
cosine
and $m0, $m0, 1
brnz $m0, 1f
f32div $a0, $a1, $a2
leave 8
1:
f32div $a0, $a2, $a1
ldconst $a1, 0xbf800000
f32mul $a0, $a0, $a1
leave 8
finish tanf

# $a0 = atan $a0 for 0..tan(pi / 8) on either side; $a1..$a3 are lost.
.macro arctangent
f32mul $a1, $a0, $a0
ldconst $a2, 0x3da50de9
times_plus $a2, $a1, 0xbe0e206e, $a3
times_plus $a2, $a1, 0x3e4c92df, $a3
times_plus $a2, $a1, 0xbeaaaa2c, $a3
f32mul $a2, $a2, $a1
f32mul $a2, $a2, $a0
f32add $a0, $a0, $a2
.endm

# $a0 = an angle, given in two parts, minus $a0; $a1 is lost.
.macro angle_minus high, low
ldconst $a1, \low
f32add $a0, $a0, $a1
ldconst $a1, \high
f32sub $a0, $a1, $a0
.endm

# $m0 the bits of a magnitude in $a0 -> $a0 = its atan.
.section .text.__atan_magnitude, "ax", @progbits
__atan_magnitude:
ldconst $m1, 0x3ed413cd
cmpult $m2, $m1, $m0
brnz $m2, 1f
arctangent
br $m10
1:
ldconst $a2, 0x3f800000
ldconst $m1, 0x401a827a
cmpult $m2, $m1, $m0
brnz $m2, 2f
# pi / 4 + atan((x - 1) / (x + 1))
f32sub $a1, $a0, $a2
f32add $a0, $a0, $a2
f32div $a0, $a1, $a0
arctangent
ldconst $a1, 0x3f490fdb
f32add $a0, $a0, $a1
br $m10
2:
# pi / 2 - atan(1 / x)
f32div $a0, $a2, $a0
arctangent
ldconst $a1, 0x3fc90fdb
f32sub $a0, $a1, $a0
br $m10

function atanf, 8
enter_link 2
float_parts $m0, $m3, $a0
to_float $a0, $m0, 1
call $m10, __atan_magnitude
give_sign $m3, 1
leave_link 2
finish atanf

# The angle of ($a1, $a0): atan of the magnitudes' quotient, in the quadrant of the signs.
function atan2f, 16
f32cmpeq $a2, $a0, $a0
f32cmpeq $a3, $a1, $a1
and $a2, $a2, $a3
atom $m0, $a2
brnz $m0, 1f
f32add $a0, $a0, $a1
br $m10
1:
enter_link 4
atom $m3, $a0
atom $m4, $a1
mov $m5, $m3
mov $m6, $m4
float_magnitude $m5
float_magnitude $m6
ldconst $m1, 0x7f800000
brz $m5, 2f
cmpeq $m0, $m5, $m1
brnz $m0, 3f
4:
to_float $a0, $m5, 1
to_float $a1, $m6, 1
f32div $a0, $a0, $a1
bri 5f
2:
# No height: the angle is nothing, whatever the width.
mov $a0, $azero
bri 5f
3:
# Infinite height: as much width is an eighth of a turn.
ldconst $a0, 0x3f800000
cmpeq $m0, $m6, $m1
brnz $m0, 5f
or $a0, $azero, 0x7f800000
5:
atom $m0, $a0
call $m10, __atan_magnitude
brpos $m4, 6f
# pi - angle
angle_minus 0x40490fdb, 0x33bbbd2e
6:
sign_bit $m3, $m3
give_sign $m3, 1
leave_link 4
finish atan2f

# asin $a0 for at most 1 / 2 on either side; $a1..$a3 are lost.
.macro arcsine
f32mul $a1, $a0, $a0
ldconst $a2, 0x3d2cf9f2
times_plus $a2, $a1, 0x3cc5c351, $a3
times_plus $a2, $a1, 0x3d3a4780, $a3
times_plus $a2, $a1, 0x3d99809b, $a3
times_plus $a2, $a1, 0x3e2aaae5, $a3
f32mul $a2, $a2, $a1
f32mul $a2, $a2, $a0
f32add $a0, $a0, $a2
.endm

# $a0 = sqrt((1 - |x|) / 2) of the magnitude in $m0
.macro half_angle
to_float $a0, $m0, 0
ldconst $a1, 0x3f800000
f32sub $a0, $a1, $a0
ldconst $a1, 0x3f000000
f32mul $a0, $a0, $a1
f32sqrt $a0, $a0
.endm

function asinf, 8
add $m11, $m11, -8
float_parts $m0, $m3, $a0
ldconst $m1, 0x3f000000
cmpult $m2, $m1, $m0
brnz $m2, 1f
arcsine
bri 2f
1:
# pi / 2 - 2 asin sqrt((1 - x) / 2)
half_angle
arcsine
f32add $a0, $a0, $a0
ldconst $a1, 0x3fc90fdb
f32sub $a0, $a1, $a0
give_sign $m3, 0
2:
add $m11, $m11, 8
br $m10
finish asinf

function acosf, 8
add $m11, $m11, -8
atom $m0, $a0
mov $m3, $m0
float_magnitude $m0
ldconst $m1, 0x3f000000
cmpult $m2, $m1, $m0
brnz $m2, 1f
arcsine
# pi / 2 - angle
angle_minus 0x3fc90fdb, 0x333bbd2e
bri 2f
1:
half_angle
arcsine
f32add $a0, $a0, $a0
brpos $m3, 2f
# pi - angle
angle_minus 0x40490fdb, 0x33bbbd2e
2:
add $m11, $m11, 8
br $m10
finish acosf

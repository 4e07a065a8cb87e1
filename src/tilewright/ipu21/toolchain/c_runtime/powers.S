# Powers, logarithms and what comes of them for workers: float in $a0 (and $a1), result in $a0.
.include "numbers.S"
.worker

# $a2 + $a3 = $a0 * $a1 exactly: both factors are split into halves whose products fit (Dekker). $a0 and $a4 to $a7
# are lost.
.macro exact_product
ldconst $a3, 0x45800800
f32mul $a6, $a0, $a3
f32sub $a4, $a6, $a0
f32sub $a4, $a6, $a4
f32mul $a7, $a1, $a3
f32sub $a5, $a7, $a1
f32sub $a5, $a7, $a5
f32sub $a6, $a0, $a4
f32sub $a7, $a1, $a5
f32mul $a2, $a0, $a1
f32mul $a0, $a4, $a5
f32sub $a3, $a0, $a2
f32mul $a0, $a4, $a7
f32add $a3, $a3, $a0
f32mul $a0, $a6, $a5
f32add $a3, $a3, $a0
f32mul $a0, $a6, $a7
f32add $a3, $a3, $a0
.endm

.macro leave_pow
ld64 $a6:7, $m11, $m15, 0
add $m11, $m11, 32
br $m10
.endm

# x to the power y is 2 to the power of y log2 x. The logarithm is the sum of two floats.
function powf, 32
add $m11, $m11, -32
st64 $a6:7, $m11, $m15, 0
atom $m0, $a0
atom $m1, $a1
ldconst $m2, 0x3f800000
mov $m4, $m0
float_magnitude $m4
mov $m5, $m1
float_magnitude $m5
# 1 to any power, and any number to the power 0, is 1, even if it is none.
cmpeq $m3, $m0, $m2
brnz $m3, .Lone
brz $m5, .Lone
or $m6, $m15, 0x7f800000
cmpult $m3, $m6, $m4
brnz $m3, .Lnan
cmpult $m3, $m6, $m5
brnz $m3, .Lnan
mov $m3, $m15
cmpult $m6, $m5, $m6
brz $m6, .Linfinite_power
brpos $m0, 2f
# A negative x: $m3 is the sign, if y is odd. $m2 becomes 0 if y is no integer.
f32int $a2, $a1, 3
f32cmpeq $a2, $a2, $a1
atom $m2, $a2
or $m6, $m15, 0x4b800000
cmpult $m6, $m5, $m6
brz $m6, 2f
f32int $a2, $a1, 3
f32toi32 $a2, $a2
atom $m6, $a2
shl $m3, $m6, 31
brnz $m2, 2f
mov $m3, $m15
2:
to_float $a0, $m4, 3
to_float $a1, $m1, 4
brz $m4, .Lplain
or $m6, $m15, 0x7f800000
cmpeq $m6, $m4, $m6
brnz $m6, .Lplain
# Of a negative number only whole powers are known.
brz $m2, .Lnan_made
# x = 2^$m2 * m with m from sqrt(1/2) to sqrt(2)
mov $m2, $m15
shr $m6, $m4, 23
brnz $m6, 3f
normalise_float $m4, $m6
sub $m2, $m15, $m6
# As if the leading one were an exponent of 1
3:
ldconst $m6, 0x3f3504f3
sub $m6, $m4, $m6
shrs $m6, $m6, 23
add $m2, $m2, $m6
shl $m6, $m6, 23
sub $m4, $m4, $m6
to_float $a0, $m4, 3
st32 $m2, $m11, $m15, 7
# z = (m - 1) / (m + 1) in two parts
ldconst $a1, 0x3f800000
f32sub $a2, $a0, $a1
f32add $a3, $a0, $a1
f32sub $a5, $a3, $a1
f32sub $a5, $a0, $a5
f32div $a0, $a2, $a3
st32 $a2, $m11, $m15, 2
st32 $a3, $m11, $m15, 3
st32 $a5, $m11, $m15, 5
st32 $a0, $m11, $m15, 6
mov $a1, $a3
exact_product
ld32 $a0, $m11, $m15, 2
f32sub $a0, $a0, $a2
f32sub $a0, $a0, $a3
ld32 $a2, $m11, $m15, 6
ld32 $a3, $m11, $m15, 5
f32mul $a3, $a2, $a3
f32sub $a0, $a0, $a3
f32div $a0, $a0, $a1
# log2 m = 2 / ln 2 * (z + z^3 / 3 + ...)
f32mul $a1, $a2, $a2
ldconst $a3, 0x3df18db9
times_plus $a3, $a1, 0x3e121bf6, $a4
times_plus $a3, $a1, 0x3e4ccd3f, $a4
times_plus $a3, $a1, 0x3eaaaaaa, $a4
f32mul $a3, $a3, $a1
f32mul $a3, $a3, $a2
f32add $a0, $a0, $a3
st32 $a0, $m11, $m15, 2
mov $a0, $a2
ldconst $a1, 0x4038aa3b
exact_product
ld32 $a0, $m11, $m15, 2
f32mul $a0, $a0, $a1
f32add $a3, $a3, $a0
ld32 $a0, $m11, $m15, 6
ldconst $a4, 0x33257060
f32mul $a0, $a0, $a4
f32add $a3, $a3, $a0
# The exponent is added and both parts are put in order.
ld32 $a0, $m11, $m15, 7
f32fromi32 $a0, $a0
f32add $a4, $a0, $a2
f32sub $a0, $a0, $a4
f32add $a0, $a0, $a2
f32add $a3, $a3, $a0
f32add $a1, $a4, $a3
f32sub $a4, $a4, $a1
f32add $a3, $a3, $a4
st32 $a3, $m11, $m15, 2
# Larger powers than 2^31 change nothing, but would not split.
ld32 $a0, $m11, $m15, 4
ldconst $a2, 0x4f000000
f32min $a0, $a0, $a2
ldconst $a2, 0xcf000000
f32max $a0, $a0, $a2
st32 $a0, $m11, $m15, 4
exact_product
ld32 $a0, $m11, $m15, 4
ld32 $a1, $m11, $m15, 2
f32mul $a0, $a0, $a1
f32add $a3, $a3, $a0
atom $m0, $a2
mov $m4, $m0
float_magnitude $m4
ldconst $m5, 0x43200000
cmpult $m4, $m5, $m4
brnz $m4, .Lfar
f32int $a0, $a2, 0
f32sub $a2, $a2, $a0
f32add $a2, $a2, $a3
f32exp2 $a2, $a2
f32toi32 $a0, $a0
atom $m4, $a0
# Two factors, so that the result may be subnormal.
shrs $m5, $m4, 1
sub $m4, $m4, $m5
power_of_two $m5
power_of_two $m4
or $m4, $m4, $m3
to_float $a0, $m5, 2
to_float $a1, $m4, 3
f32mul $a0, $a0, $a2
f32mul $a0, $a0, $a1
leave_pow
.Lfar:
mov $m4, $m15
brneg $m0, 1f
or $m4, $m15, 0x7f800000
1:
or $m4, $m4, $m3
to_float $a0, $m4, 2
leave_pow
.Lone:
ldconst $a0, 0x3f800000
leave_pow
.Lnan:
f32add $a0, $a0, $a1
leave_pow
.Lnan_made:
f32sub $a0, $a0, $a0
f32div $a0, $a0, $a0
leave_pow
.Linfinite_power:
# Of 1 it is 1, else infinite or nothing as x is larger and the power positive.
cmpeq $m6, $m4, $m2
brnz $m6, .Lone
cmpult $m6, $m2, $m4
shr $m5, $m1, 31
xor $m6, $m6, $m5
mov $a0, $azero
brz $m6, 1f
or $a0, $azero, 0x7f800000
1:
leave_pow
.Lplain:
# Of zero and infinity: the same, or its inverse.
brpos $m1, 1f
or $m6, $m15, 0x7f800000
sub $m4, $m6, $m4
1:
or $m4, $m4, $m3
to_float $a0, $m4, 2
leave_pow
finish powf

# x to a whole power by squaring; for a negative one the inverse.
function __powisf2
ldconst $a1, 0x3f800000
mov $m1, $m0
magnitude $m1, $m2
1:
and $m3, $m1, 1
brz $m3, 2f
f32mul $a1, $a1, $a0
2:
shr $m1, $m1, 1
brz $m1, 3f
f32mul $a0, $a0, $a0
bri 1b
3:
mov $a0, $a1
brpos $m0, 4f
ldconst $a0, 0x3f800000
f32div $a0, $a0, $a1
4:
br $m10
finish __powisf2

function log10f
f32ln $a0, $a0
ldconst $a1, 0x3ede5bd9
f32mul $a0, $a0, $a1
br $m10
finish log10f

# ln(1 + x): what 1 + x loses in rounding is put right by the quotient.
function log1pf
ldconst $a1, 0x3f800000
f32add $a2, $a0, $a1
f32sub $a3, $a2, $a1
f32cmpeq $a4, $a3, $azero
atom $m0, $a4
brnz $m0, 1f
f32cmpeq $a4, $a2, $a0
atom $m0, $a4
f32ln $a2, $a2
brnz $m0, 2f
f32div $a0, $a0, $a3
f32mul $a0, $a0, $a2
1:
br $m10
2:
mov $a0, $a2
br $m10
finish log1pf

# $a0 = exp $a0 - 1; $a1..$a3 and $m0, $m1 are lost.
.macro less_than_exponential
atom $m0, $a0
float_magnitude $m0
ldconst $m1, 0x3f000000
cmpult $m0, $m1, $m0
brnz $m0, 1f
ldconst $a1, 0x3951a4cc
times_plus $a1, $a0, 0x3ab777a3, $a2
times_plus $a1, $a0, 0x3c088770, $a2
times_plus $a1, $a0, 0x3d2aa940, $a2
times_plus $a1, $a0, 0x3e2aaaac, $a2
times_plus $a1, $a0, 0x3f000001, $a2
f32mul $a2, $a0, $a0
f32mul $a1, $a1, $a2
f32add $a0, $a0, $a1
bri 2f
1:
f32exp $a0, $a0
ldconst $a1, 0x3f800000
f32sub $a0, $a0, $a1
2:
.endm

function expm1f
same_below 0x33000000
less_than_exponential
br $m10
finish expm1f

# The magnitude's bits in $m2 and $a0, the sign in $m3.
.macro begin_hyperbolic
add $m11, $m11, -8
float_parts $m2, $m3, $a0
to_float $a0, $m2, 0
ldconst $m1, 0x42b00000
cmpult $m1, $m1, $m2
.endm

.macro half_squared_exponential
# From 88 on exp x / 2 is taken as the product of two roots, which are finite longer.
ldconst $a1, 0x3f000000
f32mul $a0, $a0, $a1
f32exp $a0, $a0
f32mul $a1, $a0, $a1
f32mul $a0, $a0, $a1
.endm

.macro end_hyperbolic
give_sign $m3, 0
add $m11, $m11, 8
br $m10
.endm

function sinhf, 8
begin_hyperbolic
brnz $m1, 3f
# With t = exp x - 1: (t + t / (t + 1)) / 2
less_than_exponential
ldconst $a1, 0x3f800000
f32add $a1, $a0, $a1
f32div $a1, $a0, $a1
f32add $a0, $a0, $a1
ldconst $a1, 0x3f000000
f32mul $a0, $a0, $a1
end_hyperbolic
3:
half_squared_exponential
end_hyperbolic
finish sinhf

function coshf, 8
begin_hyperbolic
mov $m3, $m15
brnz $m1, 3f
f32exp $a0, $a0
ldconst $a1, 0x3f000000
f32div $a2, $a1, $a0
f32mul $a0, $a0, $a1
f32add $a0, $a0, $a2
end_hyperbolic
3:
half_squared_exponential
end_hyperbolic
finish coshf

# x = 8^n m with m from 1 to 8: a third of m's bits as a first guess of its root, then two steps that each give three
# times as many right digits (Halley).
function cbrtf, 8
add $m11, $m11, -8
float_parts $m0, $m3, $a0
brz $m0, 9f
ldconst $m1, 0x7f800000
cmpult $m1, $m0, $m1
brz $m1, 9f
shr $m1, $m0, 23
brnz $m1, 1f
normalise_float $m0, $m1
sub $m1, 1, $m1
1:
# 3 * (n + 53) + the rest = exponent field + 32
add $m1, $m1, 32
mul $m2, $m1, 10923
shr $m2, $m2, 15
mul $m4, $m2, 3
sub $m1, $m1, $m4
power_of_two $m1
shl $m0, $m0, 9
shr $m0, $m0, 9
or $m0, $m0, $m1
to_float $a0, $m0, 0
f32fromi32 $a1, $a0
ldconst $a2, 0x3eaaaaab
f32mul $a1, $a1, $a2
f32toi32 $a1, $a1
atom $m0, $a1
ldconst $m1, 0x2a5119f2
add $m0, $m0, $m1
to_float $a1, $m0, 0
.rept 2
f32mul $a2, $a1, $a1
f32mul $a2, $a2, $a1
f32add $a3, $a0, $a0
f32add $a3, $a3, $a2
f32add $a2, $a2, $a2
f32add $a2, $a2, $a0
f32div $a3, $a3, $a2
f32mul $a1, $a1, $a3
.endr
atom $m0, $a1
add $m2, $m2, -53
shl $m2, $m2, 23
add $m0, $m0, $m2
9:
or $m0, $m0, $m3
to_float $a0, $m0, 0
add $m11, $m11, 8
br $m10
finish cbrtf

# Up to 1 a polynomial of x^2; above, 1 - exp(-p) with a polynomial p of x.
function erff, 8
add $m11, $m11, -8
float_parts $m0, $m3, $a0
ldconst $m1, 0x3f800000
cmpult $m1, $m0, $m1
brz $m1, 1f
f32mul $a1, $a0, $a0
ldconst $a2, 0x38a57268
times_plus $a2, $a1, 0xba5242f6, $a3
times_plus $a2, $a1, 0x3baa0cfb, $a3
times_plus $a2, $a1, 0xbcdbfdda, $a3
times_plus $a2, $a1, 0x3de71690, $a3
times_plus $a2, $a1, 0xbec0939f, $a3
times_plus $a2, $a1, 0x3e0375d4, $a3
f32mul $a2, $a2, $a0
f32add $a0, $a0, $a2
add $m11, $m11, 8
br $m10
1:
ldconst $m1, 0x7f800000
cmpult $m1, $m1, $m0
brnz $m1, 2f
ldconst $m1, 0x40833333
min $m0, $m0, $m1
to_float $a0, $m0, 0
ldconst $a2, 0x37b5ebf0
times_plus $a2, $a0, 0xb9e762ff, $a3
times_plus $a2, $a0, 0x3b89c65e, $a3
times_plus $a2, $a0, 0xbcce8182, $a3
times_plus $a2, $a0, 0x3dde0a8b, $a3
times_plus $a2, $a0, 0x3f221ab3, $a3
times_plus $a2, $a0, 0x3f909606, $a3
times_plus $a2, $a0, 0xb9452ba5, $a3
f32sub $a2, $azero, $a2
f32exp $a2, $a2
ldconst $a0, 0x3f800000
f32sub $a0, $a0, $a2
give_sign $m3, 0
2:
add $m11, $m11, 8
br $m10
finish erff

# The larger side times sqrt(1 + (smaller / larger)^2), which no square can take out of range.
function hypotf, 8
add $m11, $m11, -8
atom $m0, $a0
atom $m1, $a1
float_magnitude $m0
float_magnitude $m1
max $m2, $m0, $m1
min $m3, $m0, $m1
to_float $a0, $m2, 0
to_float $a1, $m3, 1
brz $m2, 9f
or $m4, $m15, 0x7f800000
cmpult $m5, $m2, $m4
brnz $m5, 1f
# Infinite if either side is, whatever the other.
cmpeq $m5, $m0, $m4
cmpeq $m4, $m1, $m4
or $m5, $m5, $m4
brz $m5, 9f
or $a0, $azero, 0x7f800000
bri 9f
1:
f32div $a1, $a1, $a0
f32mul $a1, $a1, $a1
ldconst $a2, 0x3f800000
f32add $a1, $a1, $a2
f32sqrt $a1, $a1
f32mul $a0, $a0, $a1
9:
add $m11, $m11, 8
br $m10
finish hypotf

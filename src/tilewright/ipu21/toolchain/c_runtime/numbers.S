# What functions of several sources do with pairs of words, floats and doubles.
.include "function.S"

# high = upper word of the product of a and b without signs; high may be a. Three words of scratch.
.macro multiply_high high, a, b, x, y, z
sort4x16lo \x, \a, $m15
sort4x16lo \y, \b, $m15
mul \z, \x, \y
shr \z, \z, 16
shr \high, \a, 16
mul \y, \high, \y
add \y, \y, \z
shr \z, \b, 16
mul \x, \x, \z
mul \high, \high, \z
shr \z, \y, 16
add \high, \high, \z
sort4x16lo \y, \y, $m15
add \x, \x, \y
shr \x, \x, 16
add \high, \high, \x
.endm

# Minus high:low; one word of scratch.
.macro negate high, low, x
sub \high, $m15, \high
sub \low, $m15, \low
cmpne \x, \low, $m15
sub \high, \high, \x
.endm

# The same if `sign` is negative.
.macro negate_if sign, high, low, x
brpos \sign, 1f
negate \high, \low, \x
1:
.endm

# high:low plus a word, which is lost.
.macro add_word high, low, word
add \low, \low, \word
cmpult \word, \low, \word
add \high, \high, \word
.endm

# high:low plus, and minus, another pair; one word of scratch.
.macro add_pair high, low, other_high, other_low, x
add \low, \low, \other_low
cmpult \x, \low, \other_low
add \high, \high, \other_high
add \high, \high, \x
.endm

.macro subtract_pair high, low, other_high, other_low, x
cmpult \x, \low, \other_low
sub \low, \low, \other_low
sub \high, \high, \other_high
sub \high, \high, \x
.endm

# Branch if high:low is below another pair, both without signs; one word of scratch.
.macro branch_below target, high, low, other_high, other_low, x
cmpult \x, \high, \other_high
brnz \x, \target
cmpult \x, \other_high, \high
brnz \x, 1f
cmpult \x, \low, \other_low
brnz \x, \target
1:
.endm

.macro branch_not_below target, high, low, other_high, other_low, x
cmpult \x, \high, \other_high
brnz \x, 1f
cmpult \x, \other_high, \high
brnz \x, \target
cmpult \x, \low, \other_low
brz \x, \target
1:
.endm

# A word shifted left by a number of bits, 1 to 31, which come from the top of the next word.
.macro shift_in word, next, bits, x
shl \word, \word, \bits
shr \x, \next, 32 - \bits
or \word, \word, \x
.endm

# high:low shifted by a number of bits, 1 to 31.
.macro shift_left_by high, low, bits, x
shift_in \high, \low, \bits, \x
shl \low, \low, \bits
.endm

.macro shift_right_by high, low, bits, x
shr \low, \low, \bits
shl \x, \high, 32 - \bits
or \low, \low, \x
shr \high, \high, \bits
.endm

# high:low shifted left by count, 0 <= count < 32.
.macro shift_left_short high, low, count, x
sub \x, 32, \count
shr \x, \low, \x
shl \high, \high, \count
or \high, \high, \x
shl \low, \low, \count
.endm

# high:low shifted left by count, which is lost; 0 <= count < 64.
.macro shift_left high, low, count, x
cmpult \x, \count, 32
brnz \x, 1f
mov \high, \low
mov \low, $m15
add \count, \count, -32
1:
shift_left_short \high, \low, \count, \x
.endm

# high:low shifted right by count, which is lost; 0 <= count < 64. Bit 0 tells of any bit shifted out.
.macro shift_right_sticky high, low, count, x
cmpult \x, \count, 32
brnz \x, 1f
cmpne \x, \low, $m15
or \low, \high, \x
mov \high, $m15
# Bits of the upper word are kept; what the lower word lost is in bit 0 and stays there when it moves on.
add \count, \count, -32
1:
sub \x, 32, \count
shl \x, \low, \x
cmpne \x, \x, $m15
shr \low, \low, \count
or \low, \low, \x
sub \x, 32, \count
shl \x, \high, \x
or \low, \low, \x
shr \high, \high, \count
.endm

# rest, the bits cut off below `low`, becomes what rounding to nearest even adds: 1 if they are above the middle, or
# the middle itself and the last bit of `low` is set, else 0.
.macro rounds_up rest, low, middle, x
and \x, \low, 1
add \rest, \rest, \x
cmpult \rest, \rest, \middle + 1
sub \rest, 1, \rest
.endm

# An integer as its magnitude; sign becomes 0 or -1.
.macro magnitude value, sign
shrs \sign, \value, 31
xor \value, \value, \sign
sub \value, \value, \sign
.endm

# A float given by bits, times `by` and added to: sum = sum * by + bits.
.macro times_plus sum, by, bits, x
f32mul \sum, \sum, \by
ldconst \x, \bits
f32add \sum, \sum, \x
.endm

# Bits from a main to an auxiliary register, through a word of the frame.
.macro to_float float, bits, word
st32 \bits, $m11, $m15, \word
ld32 \float, $m11, $m15, \word
.endm

# Magnitude of a float's bits, or of a double's upper word.
.macro float_magnitude bits
shl \bits, \bits, 1
shr \bits, \bits, 1
.endm

# Bit 31 alone, the sign of a float's bits, of a double's upper word or of an integer.
.macro sign_bit sign, bits
shr \sign, \bits, 31
shl \sign, \sign, 31
.endm

# A float as the bits of its magnitude, and its sign in bit 31.
.macro float_parts bits, sign, float
atom \bits, \float
sign_bit \sign, \bits
float_magnitude \bits
.endm

# The sign in bit 31, through a word of the frame, to $a0, whose own is not set; $a1 is lost.
.macro give_sign sign, word
to_float $a1, \sign, \word
or $a0, $a0, $a1
.endm

# Bits of a normal float without sign -> its significand, with the leading one.
.macro float_significand bits
shl \bits, \bits, 9
shr \bits, \bits, 9
or \bits, \bits, 0x800000
.endm

# Bits of a subnormal float without sign, not 0, moved left by `count` until bit 23 is set.
.macro normalise_float bits, count
clz \count, \bits
add \count, \count, -8
shl \bits, \bits, \count
.endm

# An exponent -> the bits of 2 to its power.
.macro power_of_two exponent
add \exponent, \exponent, 127
shl \exponent, \exponent, 23
.endm

# Returns the argument, and with it the sign of zero, if its magnitude is below that float.
.macro same_below bits
atom $m0, $a0
float_magnitude $m0
ldconst $m1, \bits
cmpult $m0, $m0, $m1
brz $m0, 1f
br $m10
1:
.endm

# The exponent field of a double's upper word.
.macro exponent_field field, high
shl \field, \high, 1
shr \field, \field, 21
.endm

# x = 0 if a double's fraction is 0.
.macro fraction_bits x, high, low
shl \x, \high, 12
or \x, \x, \low
.endm

# x = 0 if the double is a zero.
.macro any_bits x, high, low
shl \x, \high, 1
or \x, \x, \low
.endm

# The double that is made where there is no number.
.macro nan
mov $m0, $m15
ldconst $m1, 0x7ff80000
.endm

# The double in words `word` and `word` + 1 of the frame, as the first or second argument, and back.
.macro first word
ld32 $m0, $m11, $m15, \word
ld32 $m1, $m11, $m15, \word + 1
.endm

.macro second word
ld32 $m2, $m11, $m15, \word
ld32 $m3, $m11, $m15, \word + 1
.endm

.macro keep word
st32 $m0, $m11, $m15, \word
st32 $m1, $m11, $m15, \word + 1
.endm

# The first argument again as the second.
.macro same
mov $m2, $m0
mov $m3, $m1
.endm

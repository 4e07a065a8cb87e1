# Floats for the supervisor, which has no instructions for them: arguments and results are bits in $m0 and $m1
# (known). Each operation goes through doubles, whose 53 bits are enough for one rounding to give the same as
# rounding once (known: 53 >= 2 * 24 + 2).
.include "numbers.S"
.supervisor

.macro through_double operation
enter_link 4
st32 $m1, $m11, $m15, 1
call $m10, __single_to_double
keep 2
ld32 $m0, $m11, $m15, 1
call $m10, __single_to_double
same
first 2
call $m10, \operation
call $m10, __double_to_single
leave_link 4
.endm

function __addsf3, 48
through_double __adddf3
finish __addsf3

function __subsf3, 48
through_double __subdf3
finish __subsf3

function __mulsf3, 48
through_double __muldf3
finish __mulsf3

function __divsf3, 48
through_double __divdf3
finish __divsf3

.macro narrow_integer convert
enter_link 2
call $m10, \convert
call $m10, __double_to_single
leave_link 2
.endm

function __floatsisf, 8
narrow_integer __floatsidf
finish __floatsisf

function __floatunsisf, 8
narrow_integer __floatunsidf
finish __floatunsisf

.macro widen_integer convert
enter_link 2
call $m10, __single_to_double
ld32 $m10, $m11, $m15, 0
add $m11, $m11, 8
bri \convert
.endm

function __fixsfsi, 8
widen_integer __fixdfsi
finish __fixsfsi

function __fixunssfsi, 8
widen_integer __fixunsdfsi
finish __fixunssfsi

# $m0 = -1, 0 or 1 as the first is smaller, equal or larger, or `unordered`.
.macro compare_single unordered
or $m4, $m15, 0xff000000
shl $m2, $m0, 1
shl $m3, $m1, 1
cmpult $m5, $m4, $m2
cmpult $m6, $m4, $m3
or $m5, $m5, $m6
brz $m5, 1f
add $m0, $m15, \unordered
br $m10
1:
or $m2, $m2, $m3
brnz $m2, 2f
mov $m0, $m15
br $m10
2:
# Magnitudes with signs become integers of the same order.
ldconst $m4, 0x7fffffff
shrs $m2, $m0, 31
and $m2, $m2, $m4
xor $m0, $m0, $m2
shrs $m3, $m1, 31
and $m3, $m3, $m4
xor $m1, $m1, $m3
cmpslt $m2, $m0, $m1
cmpslt $m3, $m1, $m0
sub $m0, $m3, $m2
br $m10
.endm

function __eqsf2
also __nesf2
also __ltsf2
also __lesf2
also __cmpsf2
compare_single 1
finish __eqsf2

function __gtsf2
also __gesf2
compare_single -1
finish __gtsf2

function __unordsf2
or $m2, $m15, 0xff000000
shl $m0, $m0, 1
cmpult $m0, $m2, $m0
shl $m1, $m1, 1
cmpult $m1, $m2, $m1
or $m0, $m0, $m1
br $m10
finish __unordsf2

# Halves are in the lower 16 bits; what is above them is ignored (assumed).
function __gnu_h2f_ieee
sort4x16lo $m0, $m0, $m15
shr $m1, $m0, 15
shl $m1, $m1, 31
shl $m0, $m0, 17
shr $m0, $m0, 4
# Now an exponent of five bits stands where the float's lowest five are.
shr $m2, $m0, 23
brz $m2, 1f
cmpeq $m3, $m2, 31
brnz $m3, 2f
ldconst $m3, 112 << 23
add $m0, $m0, $m3
bri 3f
2:
or $m0, $m0, 0x7f800000
bri 3f
1:
brz $m0, 3f
normalise_float $m0, $m2
sub $m2, 112, $m2
shl $m2, $m2, 23
add $m0, $m0, $m2
3:
or $m0, $m0, $m1
br $m10
finish __gnu_h2f_ieee

# Rounded to nearest even.
function __gnu_f2h_ieee
shr $m1, $m0, 31
shl $m1, $m1, 15
float_magnitude $m0
shr $m2, $m0, 23
add $m2, $m2, -112
cmpslt $m3, $m2, 31
brnz $m3, 1f
# Infinite, or not a number.
or $m4, $m15, 0x7f800000
cmpult $m3, $m4, $m0
shl $m3, $m3, 9
setzi $m0, 0x7c00
or $m0, $m0, $m3
or $m0, $m0, $m1
br $m10
1:
float_significand $m0
setzi $m3, 13
cmpslt $m4, $m2, 1
brz $m4, 2f
sub $m4, 1, $m2
min $m4, $m4, 12
add $m3, $m3, $m4
setzi $m2, 1
2:
# Up from the middle on, in the middle itself if the last bit is set.
sub $m4, 32, $m3
shl $m5, $m0, $m4
shr $m0, $m0, $m3
and $m6, $m0, 1
cmpne $m3, $m5, $m15
brz $m3, 3f
or $m4, $m15, 0x80000000
cmpult $m3, $m4, $m5
cmpeq $m5, $m4, $m5
and $m5, $m5, $m6
or $m3, $m3, $m5
add $m0, $m0, $m3
3:
add $m2, $m2, -1
shl $m2, $m2, 10
add $m0, $m0, $m2
or $m0, $m0, $m1
br $m10
finish __gnu_f2h_ieee

.worker

# Comparisons of strict floating point, for workers: 0 or -1 in $m0. Only a signalling NaN may raise an exception,
# so of quiet ones (class 2, known) the instruction must not hear.
.macro strict_compare name, instruction, unordered, both=1
function \name
{
add $m0, $m15, \unordered
f32class $a2, $a0
}
{
atom $m1, $a2
f32class $a2, $a1
}
atom $m2, $a2
cmpeq $m1, $m1, 2
cmpeq $m2, $m2, 2
or $m1, $m1, $m2
brnz $m1, 1f
\instruction $a2, $a0, $a1
f32cmpeq $a3, $a0, $a0
f32cmpeq $a0, $a1, $a1
and $a3, $a3, $a0
atom $m2, $a3
brz $m2, 1f
.if \both
atom $m0, $a2
.else
sub $m0, -1, $m0
.endif
1:
br $m10
finish \name
.endm

strict_compare __strict_f32cmp_oeq, f32cmpeq, 0
strict_compare __strict_f32cmp_one, f32cmpne, 0
strict_compare __strict_f32cmp_ogt, f32cmpgt, 0
strict_compare __strict_f32cmp_oge, f32cmpge, 0
strict_compare __strict_f32cmp_olt, f32cmplt, 0
strict_compare __strict_f32cmp_ole, f32cmple, 0
strict_compare __strict_f32cmp_ord, f32cmpeq, 0, 0
strict_compare __strict_f32cmp_ueq, f32cmpeq, -1
strict_compare __strict_f32cmp_une, f32cmpne, -1
strict_compare __strict_f32cmp_ugt, f32cmpgt, -1
strict_compare __strict_f32cmp_uge, f32cmpge, -1
strict_compare __strict_f32cmp_ult, f32cmplt, -1
strict_compare __strict_f32cmp_ule, f32cmple, -1
strict_compare __strict_f32cmp_uno, f32cmpeq, -1, 0

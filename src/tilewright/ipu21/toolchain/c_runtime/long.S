# Integers of 64 bits, each in two registers, the low word first (known).
.include "numbers.S"
.supervisor

function __muldi3
mul $m1, $m1, $m2
mul $m3, $m0, $m3
add $m1, $m1, $m3
multiply_high $m3, $m0, $m2, $m4, $m5, $m6
add $m1, $m1, $m3
mul $m0, $m0, $m2
br $m10
finish __muldi3

# Shifts by $m2, 0..63.
function __ashldi3
shift_left $m1, $m0, $m2, $m3
br $m10
finish __ashldi3

function __lshrdi3
mov $m4, $m15
bri __shift_right
finish __lshrdi3

function __ashrdi3
shrs $m4, $m1, 31
bri __shift_right
finish __ashrdi3

# $m4 holds the bits that come in.
.section .text.__shift_right, "ax", @progbits
__shift_right:
cmpult $m3, $m2, 32
brnz $m3, 1f
mov $m0, $m1
mov $m1, $m4
add $m2, $m2, -32
1:
sub $m3, 32, $m2
shr $m0, $m0, $m2
shl $m5, $m1, $m3
or $m0, $m0, $m5
shr $m1, $m1, $m2
shl $m4, $m4, $m3
or $m1, $m1, $m4
br $m10

# $m1:$m0 = $m1:$m0 / $m3:$m2 and $m5:$m4 = the remainder, without signs; $m6..$m8 are lost. $m9 returns.
# By zero, which C leaves open: the quotient is 0 and the remainder the dividend (assumed).
.section .text.__divide_long, "ax", @progbits
__divide_long:
mov $m4, $m15
mov $m5, $m15
or $m6, $m0, $m1
brz $m6, 9f
or $m6, $m2, $m3
brz $m6, 5f
setzi $m6, 63
brnz $m1, 1f
mov $m1, $m0
mov $m0, $m15
setzi $m6, 31
1:
clz $m7, $m1
sub $m6, $m6, $m7
shift_left_short $m1, $m0, $m7, $m8
2:
# One bit of the dividend moves into the remainder; $m7 is what leaves that.
shr $m7, $m5, 31
shift_in $m5, $m4, 1, $m8
shift_in $m4, $m1, 1, $m8
shift_left_by $m1, $m0, 1, $m8
brnz $m7, 3f
branch_below 4f, $m5, $m4, $m3, $m2, $m8
3:
subtract_pair $m5, $m4, $m3, $m2, $m8
add $m0, $m0, 1
4:
brnzdec $m6, 2b
9:
br $m9
5:
mov $m4, $m0
mov $m5, $m1
mov $m0, $m15
mov $m1, $m15
br $m9

.macro call_divide
call $m9, __divide_long
.endm

function __udivdi3, 16
enter
call_divide
leave
finish __udivdi3

function __umoddi3, 16
enter
call_divide
mov $m0, $m4
mov $m1, $m5
leave
finish __umoddi3

# Both as magnitudes; the sign of the result is kept in the frame.
.macro signed_divide sign
st32 \sign, $m11, $m15, 3
negate_if $m1, $m1, $m0, $m4
negate_if $m3, $m3, $m2, $m4
call_divide
ld32 $m6, $m11, $m15, 3
.endm

function __divdi3, 16
enter
xor $m4, $m1, $m3
signed_divide $m4
negate_if $m6, $m1, $m0, $m4
leave
finish __divdi3

function __moddi3, 16
enter
signed_divide $m1
mov $m0, $m4
mov $m1, $m5
negate_if $m6, $m1, $m0, $m4
leave
finish __moddi3

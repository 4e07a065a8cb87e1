# Division of words. By zero, which C leaves open: the quotient is 0 and the remainder the dividend (assumed).
.include "numbers.S"
.supervisor

# $m2 = $m0 / $m1 and $m0 = the remainder, without signs; $m1, $m3 and $m4 are lost.
.macro divide
mov $m2, $m15
brz $m1, 9f
clz $m3, $m1
clz $m4, $m0
sub $m3, $m3, $m4
brneg $m3, 9f
shl $m1, $m1, $m3
1:
shl $m2, $m2, 1
cmpult $m4, $m0, $m1
brnz $m4, 2f
sub $m0, $m0, $m1
add $m2, $m2, 1
2:
shr $m1, $m1, 1
brnzdec $m3, 1b
9:
.endm

function __udivsi3
also __supervisor_udivsi3
divide
mov $m0, $m2
br $m10
finish __udivsi3

function __umodsi3
also __supervisor_umodsi3
divide
br $m10
finish __umodsi3

# The lowest number by -1 wraps to itself.
function __divsi3
also __supervisor_divsi3
magnitude $m0, $m5
magnitude $m1, $m6
divide
xor $m5, $m5, $m6
xor $m0, $m2, $m5
sub $m0, $m0, $m5
br $m10
finish __divsi3

# The remainder has the sign of the dividend.
function __modsi3
also __supervisor_modsi3
magnitude $m0, $m5
magnitude $m1, $m6
divide
xor $m0, $m0, $m5
sub $m0, $m0, $m5
br $m10
finish __modsi3

# Ends of a program that C reports with words, of which a tile has none: the run stops here, and the message names
# the function. Nothing is returned.
.include "function.S"
.supervisor

.macro stop name
function \name
1:
trap 0
bri 1b
finish \name
.endm

stop abort
stop __assert_fail
stop __assert_func
stop __assert
stop __assert_rtn
stop __stack_chk_fail
stop __cxa_pure_virtual
stop __cxa_deleted_virtual
stop compilerrt_abort_impl
stop exit

# Virtual destructors name these; there is no heap.
stop _ZdlPv
stop _ZdlPvj
stop _ZdaPv
stop _ZdaPvj

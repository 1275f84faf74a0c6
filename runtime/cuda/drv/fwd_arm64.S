//go:build cuda && linux

/* Trampolines as in fwd_amd64.S. Written from the manual, never run: no such machine was at hand. */
#define X(name)                                    \
	.globl name;                               \
	.hidden name;                              \
	.type name, %function;                     \
	name : adrp x16, aitk_slot_##name;         \
	ldr x16, [x16, :lo12:aitk_slot_##name];    \
	br x16;
	.text
#include "symbols.h"
	.section .note.GNU-stack, "", %progbits

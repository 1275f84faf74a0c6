//go:build cuda && linux

/* Trampolines: each driver function jumps to wherever its slot points. They are hidden, so that libraries which are loaded later and bring the
 * driver along bind to the driver and not to these. */
#define X(name)                  \
	.globl name;             \
	.hidden name;            \
	.type name, @function;   \
	name : jmp *aitk_slot_##name(%rip);
	.text
#include "symbols.h"
	.section .note.GNU-stack, "", @progbits

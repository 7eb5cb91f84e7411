/* SPDX-License-Identifier: Apache-2.0 */
/* plug - libplug_a.so and libplug_b.so: PLUG_INNER and LOCALS differ, the layout does not. */
#include "work.h"

KEEP static void PLUG_INNER(void (*leaf)(void))
{
	char local[LOCALS];

	__asm__ volatile("" ::"r"(local) : "memory");
	leaf();
	__asm__ volatile("" ::"r"(local) : "memory");
}

KEEP void plug_outer(void (*leaf)(void));
KEEP void plug_outer(void (*leaf)(void))
{
	char local[LOCALS / 2];

	__asm__ volatile("" ::"r"(local) : "memory");
	PLUG_INNER(leaf);
	__asm__ volatile("" ::"r"(local) : "memory");
}

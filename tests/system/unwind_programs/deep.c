/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deep - a chain of LEVELS (30, 40, 100, 200 or 300) different functions with frames of
 * different sizes: main, level_0, level_1, ..., spin. FRAME_BYTES(n) is the size of a level's
 * locals.
 */
#include "work.h"

#ifndef LEVELS
#define LEVELS 40
#endif
#ifndef FRAME_BYTES
#define FRAME_BYTES(n) (8 + (n)*56 % 296)
#endif

#define LEVEL(n, next)                                                                             \
	KEEP static int level_##n(int x)                                                           \
	{                                                                                          \
		char pad[FRAME_BYTES(n)];                                                          \
		int y;                                                                             \
                                                                                                   \
		pad[0] = (char)x;                                                                  \
		pad[sizeof(pad) - 1] = (char)x;                                                    \
		__asm__ volatile("" ::"r"(pad) : "memory");                                        \
		y = next(x + n);                                                                   \
		NO_TAIL_CALL;                                                                      \
		return y + pad[0] + x;                                                             \
	}
/* From the innermost of ten on, so that each is declared when it is called. */
#define TEN(p, next)                                                                               \
	LEVEL(p##9, next)                                                                          \
	LEVEL(p##8, level_##p##9)                                                                  \
	LEVEL(p##7, level_##p##8)                                                                  \
	LEVEL(p##6, level_##p##7)                                                                  \
	LEVEL(p##5, level_##p##6)                                                                  \
	LEVEL(p##4, level_##p##5)                                                                  \
	LEVEL(p##3, level_##p##4)                                                                  \
	LEVEL(p##2, level_##p##3)                                                                  \
	LEVEL(p##1, level_##p##2)                                                                  \
	LEVEL(p##0, level_##p##1)

KEEP static int bottom(int x)
{
	spin();
	NO_TAIL_CALL;
	return x;
}

#if LEVELS == 30
#define level_30 bottom
#elif LEVELS == 40
#define level_40 bottom
#elif LEVELS == 100
#define level_100 bottom
#elif LEVELS == 200
#define level_200 bottom
#else
#define level_300 bottom
#endif

#if LEVELS > 200
TEN(29, level_300)
TEN(28, level_290)
TEN(27, level_280)
TEN(26, level_270)
TEN(25, level_260)
TEN(24, level_250)
TEN(23, level_240)
TEN(22, level_230)
TEN(21, level_220)
TEN(20, level_210)
#endif
#if LEVELS > 100
TEN(19, level_200)
TEN(18, level_190)
TEN(17, level_180)
TEN(16, level_170)
TEN(15, level_160)
TEN(14, level_150)
TEN(13, level_140)
TEN(12, level_130)
TEN(11, level_120)
TEN(10, level_110)
#endif
#if LEVELS > 40
TEN(9, level_100)
TEN(8, level_90)
TEN(7, level_80)
TEN(6, level_70)
TEN(5, level_60)
TEN(4, level_50)
#endif
#if LEVELS > 30
TEN(3, level_40)
#endif
TEN(2, level_30)
TEN(1, level_20)
TEN(, level_10)

int main(int argc, char **argv)
{
	work_begin(argc, argv);
	while (!over())
		work_sink += (unsigned)level_0(argc);
	return 0;
}

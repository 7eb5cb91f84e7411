/* SPDX-License-Identifier: Apache-2.0 */
/* A walk over the memory of image_fuzz.h, without tables of files; the registers are its beginning.
 */
#ifndef FIRN_TESTS_IMAGE_WALK_H
#define FIRN_TESTS_IMAGE_WALK_H

#include "image_fuzz.h"

static inline long walk_read_registers(__u64 *to)
{
	return walk_read(to, 168, BASE);
}

#include "../unit/walk/without_files.h"

static bool walk_ask(struct walk *walk)
{
	(void)walk;
	return false;
}

#endif

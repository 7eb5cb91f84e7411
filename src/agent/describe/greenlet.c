/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/greenlet.h"

#include <string.h>

/* CPython loads a module in C by the name of its file: the module's, and a suffix. */
static bool is_greenlet(const struct mapping *mapping)
{
	const char *path = mapping && mapping->binary ? mapping->binary->path : NULL;
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *name = slash ? slash + 1 : path;

	if (!name)
		return false;
	name += *name == '_'; /* since greenlet 1.0 */
	return !strncmp(name, "greenlet.", strlen("greenlet."));
}

size_t greenlet_frames(const struct space *space, const uint64_t *addresses, size_t count,
		       const bool *loops)
{
	bool has_loop = false;

	for (size_t i = 0; i < count; i++) {
		has_loop |= loops[i];
		if (has_loop && is_greenlet(space_find(space, addresses[i])))
			return i;
	}
	return count;
}

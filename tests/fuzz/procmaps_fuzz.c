/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /proc/PID/maps: what is accepted keeps its promises. */
#include <stdlib.h>

#include "codec/process/procmaps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest = slice_from(data, size);
	struct strbuf path = { 0 };

	while (rest.len) {
		struct slice line = slice_cut(rest, '\n', &rest);
		struct procmaps_line map;
		struct err err;

		if (procmaps_parse_line(line, &map, &err))
			continue;
		if (map.start >= map.end || map.path.len > line.len)
			abort();
		strbuf_clear(&path);
		procmaps_add_path(&path, map.path);
		if (path.len > map.path.len)
			abort();
	}
	strbuf_free(&path);
	return 0;
}

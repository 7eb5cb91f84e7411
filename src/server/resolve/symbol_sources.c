/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/symbol_sources.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "server/resolve/debug_files.h"

void symbol_sources_close(struct symbol_sources *sources)
{
	for (size_t i = 0; i < sources->count; i++) {
		close(sources->inputs[i].fd);
		free((char *)sources->inputs[i].name);
	}
	*sources = (struct symbol_sources){ .count = 0 };
}

void symbol_sources_add(struct symbol_sources *sources, int fd, struct slice name)
{
	if (sources->count == SYMBOL_INPUTS_MAX) {
		close(fd);
		return;
	}
	sources->inputs[sources->count++] =
		(struct symbol_input){ fd, mem_strndup(name.data, name.len) };
}

void symbol_sources_set_binary(struct symbol_sources *sources, int fd, struct slice path)
{
	symbol_sources_add(sources, fd, path);
	sources->has_binary = sources->is_local = true;
}

void symbol_sources_find(struct symbol_sources *sources, const char *directory,
			 struct slice build_id)
{
	int fd = debug_files_open_by_id(directory, build_id, NULL);

	if (fd < 0 && sources->is_local)
		fd = debug_files_open_by_link(sources->inputs[0].fd, sources->inputs[0].name,
					      build_id, NULL);
	if (fd >= 0)
		symbol_sources_add(sources, fd, SLICE_LITERAL("its debug file"));
}

int symbol_sources_build(const struct symbol_sources *sources, const struct symbol_limits *limits,
			 struct symbol_table **ret, struct err *err)
{
	int status = symbol_table_build(sources->inputs, sources->count, limits, ret, err);

	if (status && sources->has_binary && sources->count > 1)
		status = symbol_table_build(sources->inputs, 1, limits, ret, err);
	return status;
}

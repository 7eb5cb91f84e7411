/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/sources/symbol_sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "server/resolve/read/debug_files.h"
#include "server/resolve/table/spill.h"
#include "server/resolve/worker/symbol_worker.h"

void symbol_sources_close(struct symbol_sources *sources)
{
	for (size_t i = 0; i < sources->count; i++) {
		close(sources->inputs[i].fd);
		free((char *)sources->inputs[i].name);
	}
	free(sources->directory);
	*sources = (struct symbol_sources){ .count = 0 };
}

static void add(struct symbol_sources *sources, int fd, struct slice name,
		enum symbol_input_kind kind)
{
	if (fd < 0)
		return;
	if (sources->count == SYMBOL_INPUTS_MAX) {
		close(fd);
		return;
	}
	sources->inputs[sources->count++] = (struct symbol_input){
		.fd = fd,
		.name = mem_strndup(name.data, name.len),
		.kind = kind,
		.directory = kind == SYMBOL_INPUT_MAIN ? sources->directory : NULL,
	};
}

void symbol_sources_add(struct symbol_sources *sources, int fd, struct slice name)
{
	add(sources, fd, name, SYMBOL_INPUT_MAIN);
}

void symbol_sources_set_binary(struct symbol_sources *sources, int fd, struct slice path)
{
	size_t len = path.len;

	while (len && path.data[len - 1] != '/')
		len--;
	sources->directory = mem_strndup(len ? path.data : "./", len ? len : 2);
	symbol_sources_add(sources, fd, path);
	sources->has_binary = sources->is_local = true;
}

/* "program.dwp" beside "program", as debuggers look for it. */
static void add_package(struct symbol_sources *sources)
{
	struct strbuf path = { 0 };

	strbuf_addf(&path, "%s.dwp", sources->inputs[0].name);
	add(sources, debug_files_open(path.data, NULL), strbuf_slice(&path), SYMBOL_INPUT_PACKAGE);
	strbuf_free(&path);
}

void symbol_sources_find(struct symbol_sources *sources, const char *directory,
			 struct slice build_id)
{
	const char *path = sources->is_local ? sources->inputs[0].name : NULL;
	int fd = debug_files_open_by_id(directory, build_id, NULL);
	size_t count;

	if (fd < 0 && sources->is_local)
		fd = debug_files_open_by_link(sources->inputs[0].fd, path, build_id, NULL);
	add(sources, fd, SLICE_LITERAL("its debug file"), SYMBOL_INPUT_MAIN);
	count = sources->count;
	for (size_t i = 0; i < count; i++) {
		fd = debug_files_open_alternate(sources->inputs[i].fd, path, directory, NULL);
		if (fd < 0 && sources->uploads_path)
			fd = debug_files_open_alternate(sources->inputs[i].fd, path,
							sources->uploads_path, NULL);
		add(sources, fd, SLICE_LITERAL("its alternate debug file"), SYMBOL_INPUT_ALTERNATE);
	}
	if (sources->is_local)
		add_package(sources);
	add(sources, debug_files_open_upload(sources->uploads_path, build_id, "dwp", NULL),
	    SLICE_LITERAL("its package of split DWARF"), SYMBOL_INPUT_PACKAGE);
}

int symbol_sources_build(const struct symbol_sources *sources, const struct symbol_limits *limits,
			 const char *scratch_directory, const _Atomic bool *cancelled, int out_fd,
			 struct err *err)
{
	int status = symbol_worker_build(sources->inputs, sources->count, limits, scratch_directory,
					 cancelled, out_fd, err);

	if (!status || status == -ERR_CANCELLED || !sources->has_binary || sources->count < 2)
		return status;
	if (ftruncate(out_fd, 0))
		return err_set_errno(err, errno, "empty a symbol table");
	return symbol_worker_build(sources->inputs, 1, limits, scratch_directory, cancelled, out_fd,
				   err);
}

int symbol_sources_table(const struct symbol_sources *sources, const struct symbol_asked *asked,
			 struct symbol_table **ret, struct err *err)
{
	struct symbol_limits limits = symbol_limits_default;
	int fd = spill_file(P_tmpdir, err), status;

	limits.asked = asked;
	limits.is_for_once = asked;
	if (fd < 0)
		return fd;
	status = symbol_sources_build(sources, &limits, P_tmpdir, NULL, fd, err);
	if (!status)
		status = symbol_table_open(fd, "a new one", ret, err);
	close(fd);
	return status;
}

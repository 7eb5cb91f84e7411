/* SPDX-License-Identifier: Apache-2.0 */
#include "made_table.h"

#include <sys/mman.h>
#include <unistd.h>

static int open_made(struct made_table *made, int status, struct err *err)
{
	if (!status)
		status = symbol_table_open(made->fd, "made", &made->table, err);
	if (!status)
		made->texts = symbol_texts_new(made->table);
	else
		made_table_free(made);
	return status;
}

int made_table_finish(struct symbol_builder *builder, struct made_table *ret, struct err *err)
{
	char none[] = "";
	const struct symbol_table about = { .note = none };

	*ret = (struct made_table){ .fd = memfd_create("table", MFD_CLOEXEC) };
	return open_made(ret, symbol_builder_finish(builder, &about, ret->fd, err), err);
}

int made_table_read(const struct symbol_input *inputs, size_t count,
		    const struct symbol_limits *limits, struct made_table *ret, struct err *err)
{
	struct symbol_report report;
	int status;

	*ret = (struct made_table){ .fd = memfd_create("table", MFD_CLOEXEC) };
	status = symbol_reader_write(inputs, count, limits, NULL, NULL, ret->fd, &report, err);
	return open_made(ret, status, err);
}

void made_table_free(struct made_table *made)
{
	symbol_texts_free(made->texts);
	symbol_table_free(made->table);
	if (made->fd >= 0)
		close(made->fd);
	*made = (struct made_table){ .fd = -1 };
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/attach/libbpf_log.h"

#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/slice.h"

#define MESSAGE_BYTES_MAX ((size_t)16 * 1024)

static void print_lines(struct slice text)
{
	while (text.len) {
		struct slice line = slice_cut(text, '\n', &text);

		if (line.len)
			log_debug("libbpf", "message", "text=\"%.*s\"", SLICE_FMT(line));
	}
}

__attribute__((format(printf, 2, 0))) static int print(enum libbpf_print_level level,
						       const char *format, va_list arguments)
{
	char *text;
	int len;

	if (level == LIBBPF_DEBUG)
		return 0;
	len = vasprintf(&text, format, arguments);
	if (len < 0)
		return 0;
	if ((size_t)len > MESSAGE_BYTES_MAX)
		print_lines(
			slice_from(text + ((size_t)len - MESSAGE_BYTES_MAX), MESSAGE_BYTES_MAX));
	else
		print_lines(slice_from(text, (size_t)len));
	free(text);
	return 0;
}

void libbpf_log_install(void)
{
	libbpf_set_print(print);
}

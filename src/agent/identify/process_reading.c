/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/identify/process_reading.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/identify/otel_context.h"

#define ENVIRON_BYTES_MAX ((size_t)256 << 10)
#define MAPS_BYTES_MAX ((size_t)16 << 20)
#define MAPS_BUFFER_BYTES ((size_t)16 << 10)
#define TRIES 3 /* at a context that is being written */

/* Names that say what a program is, whatever the configuration. */
static const char *const known_variables[] = { "OTEL_SERVICE_NAME", "DD_SERVICE",	 "DD_ENV",
					       "DD_VERSION",	    "DD_GIT_COMMIT_SHA", NULL };

static int open_file(const struct process_reading *reading, const char *name)
{
	return openat(reading->proc, name, O_RDONLY | O_CLOEXEC);
}

/* The file's first bytes. */
static void read_file(const struct process_reading *reading, const char *name, size_t max,
		      struct strbuf *ret)
{
	int fd = open_file(reading, name);
	ssize_t got = fd < 0 ? -1 : 1;

	while (got > 0 && ret->len < max) {
		size_t room =
			max - ret->len < MAPS_BUFFER_BYTES ? max - ret->len : MAPS_BUFFER_BYTES;

		got = read(fd, strbuf_reserve(ret, room), room);
		if (got > 0)
			ret->len += (size_t)got;
	}
	if (fd >= 0)
		close(fd);
}

static void read_command_line(struct process_reading *reading)
{
	struct strbuf text = { 0 };
	size_t len;

	read_file(reading, "cmdline", META_LABELS_VALUE_MAX, &text);
	while (text.len && !text.data[text.len - 1])
		text.len--;
	for (size_t i = 0; i < text.len; i++)
		if (!text.data[i])
			text.data[i] = ' ';
	len = text.len;
	while (len && len + 4 > text.len && !slice_is_utf8(slice_from(text.data, len)))
		len--; /* cut within a character */
	meta_labels_add(&reading->labels, "__meta_process_cmdline", slice_from(text.data, len));
	strbuf_free(&text);
}

/* ---- environment ---- */

static bool is_wanted(const struct process_reading *reading, struct slice name)
{
	struct slice names = strbuf_slice(&reading->variables);

	for (size_t i = 0; known_variables[i]; i++)
		if (slice_is(name, known_variables[i]))
			return true;
	while (names.len)
		if (slice_equal(slice_cut(names, '\0', &names), name))
			return true;
	return false;
}

/* What OpenTelemetry's variables say counts where the process has published no context. */
static void take_variable(struct process_reading *reading, struct slice name, struct slice value,
			  struct slice *ret_attributes)
{
	struct meta_labels *labels = &reading->labels;

	if (slice_is(name, "OTEL_RESOURCE_ATTRIBUTES"))
		*ret_attributes = value;
	if (slice_is(name, "OTEL_SERVICE_NAME") &&
	    !meta_labels_find(labels, OTEL_META "service_name").len)
		meta_labels_add(labels, OTEL_META "service_name", value);
	if (is_wanted(reading, name))
		meta_labels_add_of(labels, ENV_META, name, value);
}

static void read_environment(struct process_reading *reading)
{
	struct slice rest, value, attributes = { 0 };
	struct strbuf text = { 0 };

	read_file(reading, "environ", ENVIRON_BYTES_MAX, &text);
	rest = strbuf_slice(&text);
	while (rest.len) {
		struct slice variable = slice_cut(rest, '\0', &rest);
		struct slice name = slice_cut(variable, '=', &value);

		take_variable(reading, name, value, &attributes);
	}
	otel_context_add_variable(attributes, &reading->labels);
	strbuf_free(&text);
}

/* ---- process context ---- */

static bool read_memory(int memory, uint64_t address, void *to, size_t len)
{
	return address <= INT64_MAX && pread(memory, to, len, (off_t)address) == (ssize_t)len;
}

static bool read_header(int memory, uint64_t at, struct otel_context_header *ret)
{
	uint8_t bytes[OTEL_CONTEXT_HEADER_BYTES];

	return read_memory(memory, at, bytes, sizeof(bytes)) &&
	       otel_context_header_parse(bytes, ret);
}

/* The context as it was at one moment: whoever writes it anew changes the time in its header. */
static bool read_context(struct process_reading *reading, int memory, uint64_t at)
{
	struct otel_context_header before, after;
	struct meta_labels labels = { 0 };
	struct strbuf payload = { 0 };
	bool is_read = false;

	for (int i = 0; !is_read && i < TRIES && read_header(memory, at, &before); i++)
		is_read = read_memory(memory, before.address,
				      strbuf_reserve(&payload, before.bytes), before.bytes) &&
			  read_header(memory, at, &after) &&
			  before.published_ns == after.published_ns;
	is_read = is_read &&
		  !otel_context_decode(slice_from(payload.data, before.bytes), &labels, NULL);
	if (is_read)
		meta_labels_copy(&reading->labels, &labels);
	meta_labels_free(&labels);
	strbuf_free(&payload);
	return is_read;
}

/* True if a mapping of a context is among these whole lines, and its header's address. */
static bool find_in_lines(struct slice lines, uint64_t *ret)
{
	while (lines.len)
		if (otel_context_is_mapping(slice_cut(lines, '\n', &lines), ret))
			return true;
	return false;
}

/* Goes through /proc/PID/maps with little memory: a process may have a million mappings. */
static uint64_t find_context(const struct process_reading *reading)
{
	int fd = open_file(reading, "maps");
	struct strbuf text = { 0 };
	uint64_t found = 0;
	ssize_t got = fd < 0 ? -1 : 1;

	for (size_t total = 0; !found && got > 0 && total < MAPS_BYTES_MAX; total += (size_t)got) {
		const char *end;
		size_t lines;

		got = read(fd, strbuf_reserve(&text, MAPS_BUFFER_BYTES), MAPS_BUFFER_BYTES);
		if (got <= 0)
			break;
		text.len += (size_t)got;
		end = memrchr(text.data, '\n', text.len);
		lines = end ? (size_t)(end - text.data) + 1 : 0;
		if (!find_in_lines(slice_from(text.data, lines), &found))
			found = 0;
		memmove(text.data, text.data + lines, text.len - lines);
		text.len -= lines;
	}
	if (fd >= 0)
		close(fd);
	strbuf_free(&text);
	return found;
}

static void read_own_context(struct process_reading *reading)
{
	int memory = open_file(reading, "mem");

	if (memory < 0)
		return;
	if (!reading->context_at || !read_context(reading, memory, reading->context_at)) {
		reading->context_at = find_context(reading);
		if (reading->context_at)
			read_context(reading, memory, reading->context_at);
	}
	close(memory);
}

void process_reading_do(struct process_reading *reading)
{
	if (!reading->is_young)
		read_own_context(reading);
	read_environment(reading);
	read_command_line(reading);
}

void process_reading_fini(struct process_reading *reading)
{
	if (reading->proc >= 0)
		close(reading->proc);
	strbuf_free(&reading->variables);
	meta_labels_free(&reading->labels);
	reading->proc = -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* firn unwind-table - prints the unwind table of a binary, as the unwinder will see it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "agent/unwind/rule_text.h"
#include "agent/unwind/table_build.h"
#include "base/clock.h"
#include "base/printable.h"
#include "cli/verb.h"
#include "codec/elf/elf.h"

struct unwind_table_verb_options {
	struct verb_common common;
	bool stats;
};

static const struct option options[] = {
	OPTION_AT(UNWIND_TABLE_STATS, offsetof(struct unwind_table_verb_options, stats)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "unwind-table",
	.operands = "FILE",
	.summary = "show how the stacks of a binary are unwound",
	.details =
		"Builds the unwind table of an ELF file (x86-64, arm64) and prints its rows, one "
		"per line,\n"
		"by ascending address (hexadecimal, of the file); each holds up to the next "
		"one:\n\n"
		"  0000000000001139 CFA=rsp+16 RA=c-8 FP=c-16\n\n"
		"CFA is the caller's stack pointer: reg+N, *(reg+N)+N, *(reg+8*reg+N)+N, or, in\n"
		"linkage tables, rsp+8+8*(pc%16>=N). RA (the return address) and FP (the caller's\n"
		"rbp or x29) are c+N: at that distance from the CFA in memory; v+N: CFA + N "
		"itself;\n"
		"*(reg+N): in memory; reg+N: in a register; same: unchanged (an RA: in x30); u: "
		"lost;\n"
		"or unsupported. \"signal\" at the end: the caller was interrupted there; "
		"\"pac\": the\n"
		"return address is signed. In place of all this: \"end\", the outermost frame; "
		"\"none\",\n"
		"nothing is known; \"unsupported\", known, but no rule can express it.\n\n"
		"Exits 1 when the file has no unwind information.\n\n"
		"  firn unwind-table --stats /bin/true",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

/*
 * Prints the rows of one executable segment after the other, since the order of addresses need not
 * be that of offsets. A row is printed when the next one is further on, and says something else.
 */
struct printer {
	const struct elf_segment *segment;
	uint16_t machine;
	bool has_row;
	uint64_t offset;
	struct unwind_rule rule;
	struct strbuf text, printed;
};

static void print_held(struct printer *printer)
{
	struct strbuf swap = printer->printed;

	if (!printer->has_row)
		return;
	strbuf_clear(&printer->text);
	rule_text_add(&printer->text, &printer->rule, printer->machine);
	if (slice_equal(strbuf_slice(&printer->text), strbuf_slice(&printer->printed)))
		return;
	printf("%016" PRIx64 " %s\n",
	       printer->segment->address + (printer->offset - printer->segment->offset),
	       strbuf_text(&printer->text));
	printer->printed = printer->text;
	printer->text = swap;
}

static int take_row(void *context, uint64_t offset, const struct unwind_rule *rule)
{
	struct printer *printer = context;

	if (offset < printer->segment->offset)
		offset = printer->segment->offset;
	if (offset - printer->segment->offset > printer->segment->file_bytes)
		offset = printer->segment->offset + printer->segment->file_bytes;
	if (printer->has_row && offset > printer->offset)
		print_held(printer);
	if (!printer->has_row || offset - printer->segment->offset < printer->segment->file_bytes) {
		printer->has_row = true;
		printer->offset = offset;
		printer->rule = *rule;
	}
	return 0;
}

static int print_segment(const struct table_file *file, const struct elf_segment *segment,
			 struct err *err)
{
	static const struct unwind_rule none = { .cfa = UNWIND_CFA_NONE };
	struct printer printer = { .segment = segment, .machine = (uint16_t)file->header.machine };
	int status = 0;

	for (uint32_t i = 0; !status && i < file->header.segments_count; i++) {
		const struct table_file_segment *part = &file->header.segments[i];
		struct table_image image = { 0 };

		status = table_image_load(file, i, &image, err);
		if (!status)
			table_image_walk(&image, take_row, &printer);
		table_image_free(&image);
		/* Nothing is known behind it, unless the next one begins there. */
		take_row(&printer,
			 ((uint64_t)part->first_block + part->blocks) << TABLE_BLOCK_SHIFT, &none);
	}
	print_held(&printer);
	printer.offset = segment->offset + segment->file_bytes;
	printer.rule = none;
	print_held(&printer);
	strbuf_free(&printer.text);
	strbuf_free(&printer.printed);
	return status;
}

static int by_address(const void *a, const void *b)
{
	const struct elf_segment *first = a, *second = b;

	return (first->address > second->address) - (first->address < second->address);
}

static int print_table(int fd, const char *path, const struct table_file *file, struct err *err)
{
	struct elf_info info;
	int status = elf_read_info(fd, path, &info, err);

	if (status)
		return status;
	qsort(info.segments, info.segments_count, sizeof(info.segments[0]), by_address);
	for (size_t i = 0; !status && i < info.segments_count; i++)
		if (info.segments[i].executable && info.segments[i].file_bytes)
			status = print_segment(file, &info.segments[i], err);
	if (!status && (fflush(stdout) || ferror(stdout)))
		status = err_set_errno(err, errno, "write the rows of \"%s\"", path);
	return status;
}

static void print_stats(const struct table_stats *stats, uint64_t cpu_ns)
{
	static const char *const names[TABLE_SOURCES] = { "start",	 "gopclntab", "eh_frame",
							  "debug_frame", "sframe",    "plt" };
	uint64_t functions = 0;

	for (size_t i = 0; i < TABLE_SOURCES; i++)
		functions += stats->functions[i];
	printable_print(stderr, "sources: %s\nfunctions: %" PRIu64, stats->sources, functions);
	for (size_t i = 0; i < TABLE_SOURCES; i++)
		fprintf(stderr, " %s=%" PRIu64, names[i], stats->functions[i]);
	fprintf(stderr,
		"\nrows: %" PRIu64 " unsupported=%" PRIu64 "\nrules: %" PRIu64
		"\nsegments: %u%s\nbytes: %" PRIu64 "\nleft out: malformed=%" PRIu64
		" outside=%" PRIu64 " duplicates=%" PRIu64 "\ncpu seconds: %.3f\n",
		stats->rows, stats->rows_unsupported, stats->rules, stats->segments,
		stats->is_cut ? " (cut: the table is full)" : "", stats->bytes, stats->malformed,
		stats->outside, stats->duplicates, (double)cpu_ns / CLOCK_NS_PER_S);
}

static uint64_t cpu_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * CLOCK_NS_PER_S + (uint64_t)now.tv_nsec;
}

static int show(const char *path, bool with_stats, struct err *err, int *ret_code)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int table_fd = memfd_create("unwind-table", MFD_CLOEXEC);
	struct table_input input = { .fd = fd, .name = path };
	uint64_t before_ns = cpu_time_ns();
	struct table_stats stats = { 0 };
	struct table_file file = { 0 };
	int status = 0;

	if (fd < 0)
		status = err_set_errno(err, errno, "open \"%s\"", path);
	else if (table_fd < 0)
		status = err_set_errno(err, errno, "make room for a table in memory");
	if (!status)
		status = table_build(&input, table_fd, NULL, &stats, err);
	if (!status && with_stats)
		print_stats(&stats, cpu_time_ns() - before_ns);
	if (!status)
		status = table_file_open(table_fd, path, &file, err);
	if (!status)
		status = print_table(fd, path, &file, err);
	if (!status && file.damaged_count) {
		*err = file.damage;
		status = -err->code;
	}
	*ret_code = !status && !stats.rows ? VERB_NEGATIVE : VERB_OK;
	if (fd >= 0)
		close(fd);
	if (table_fd >= 0)
		close(table_fd);
	return status;
}

static int run(int argc, char **argv)
{
	struct unwind_table_verb_options values = { 0 };
	struct option_operands operands;
	struct err err;
	int code = verb_parse(&verb_unwind_table, argc, argv, &values, &operands), result;

	if (code >= 0)
		return code;
	if (operands.count != 1) {
		err_set(&err, ERR_INVALID, "expected one ELF file, for example /bin/true");
		return verb_error(&verb_unwind_table, &err);
	}
	if (show(operands.items[0], values.stats, &err, &result))
		return verb_error(&verb_unwind_table, &err);
	if (result == VERB_NEGATIVE)
		printable_print(stderr, "firn unwind-table: \"%s\" has no unwind information\n",
				operands.items[0]);
	return result;
}

const struct verb verb_unwind_table = { &spec, run, LOG_WARN };

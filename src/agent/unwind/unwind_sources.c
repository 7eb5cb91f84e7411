/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/unwind_sources.h"

#include <assert.h>
#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>

#include "agent/unwind/go_table.h"
#include "agent/unwind/plt_rows.h"
#include "agent/unwind/thread_start.h"
#include "base/mem.h"
#include "base/order/bisect.h"
#include "codec/elf/cfi.h"
#include "codec/elf/sframe.h"

#define SORT_SMALL 16		 /* sorted by insertion */
#define START_BYTES_MAX 64	 /* of an entry point of unknown length */
#define FUNCTIONS_PER_LOOK 1024u /* at whether to stop */
#define NEW_THREAD_BYTES_MAX 64	 /* of what a new thread runs in clone */

/* What a function of TABLE_SOURCE_START is: its cookie. */
enum start_kind {
	START_OUTERMOST, /* has no caller */
	START_CLONE,	 /* ... in the new thread */
};

struct unwind_sources {
	const struct table_input *input;
	const struct table_limits *limits;
	struct table_stats *stats;
	struct elf_layout layout;
	struct source_list lists[TABLE_SOURCES];
	uint64_t functions_count;
	struct cfi *eh_frame, *debug_frame; /* NULL: there is none, as below */
	struct gopclntab *gopclntab;
	struct sframe *sframe;
	struct section_reader scratch;
};

/* What happens to functions while a source lists them. */
struct listing {
	struct unwind_sources *sources;
	enum table_source source;
	struct err *err;
};

/* ---- functions ---- */

/* Addresses of code to offsets in the file; false: not in an executable segment. */
static bool locate(const struct unwind_sources *sources, uint64_t start, uint64_t end,
		   struct source_function *ret)
{
	const struct elf_info *info = &sources->layout.info;

	for (size_t i = 0; i < info->segments_count; i++) {
		const struct elf_segment *segment = &info->segments[i];
		uint64_t into = start - segment->address, bytes = segment->file_bytes;

		if (!segment->executable || start < segment->address ||
		    segment->offset >= info->file_bytes)
			continue;
		if (bytes > info->file_bytes - segment->offset)
			bytes = info->file_bytes - segment->offset;
		if (into >= bytes)
			continue;
		if (bytes - into < end - start)
			end = start + (bytes - into);
		if (segment->offset + into + (end - start) > UINT32_MAX)
			return false;
		ret->start = (uint32_t)(segment->offset + into);
		ret->length = (uint32_t)(end - start);
		return true;
	}
	return false;
}

static int add_function(void *context, uint64_t start, uint64_t end, uint64_t cookie)
{
	const struct listing *listing = context;
	struct unwind_sources *sources = listing->sources;
	struct source_list *list = &sources->lists[listing->source];
	const struct table_limits *limits = sources->limits;
	struct source_function function;

	if (++sources->functions_count > limits->functions)
		return err_set(listing->err, ERR_LIMIT,
			       "build the unwind table of \"%s\": over %" PRIu64 " functions",
			       sources->input->name, limits->functions);
	if (sources->functions_count % FUNCTIONS_PER_LOOK == 0 && limits->cancel &&
	    atomic_load_explicit(limits->cancel, memory_order_relaxed))
		return err_set(listing->err, ERR_CANCELLED,
			       "build the unwind table of \"%s\": cancelled", sources->input->name);
	if (end <= start || cookie > UINT32_MAX || !locate(sources, start, end, &function)) {
		sources->stats->outside++;
		return 0;
	}
	function.cookie = (uint32_t)cookie;
	mem_grow(list->functions, list->count, list->capacity);
	list->functions[list->count++] = function;
	return 0;
}

static uint64_t sort_key(const struct source_function *function)
{
	return (uint64_t)function->start << 32 | function->cookie;
}

static void swap(struct source_function *a, struct source_function *b)
{
	struct source_function t = *a;

	*a = *b;
	*b = t;
}

static void sort_small(struct source_function *functions, size_t count)
{
	for (size_t i = 1; i < count; i++)
		for (size_t j = i; j && sort_key(&functions[j]) < sort_key(&functions[j - 1]); j--)
			swap(&functions[j], &functions[j - 1]);
}

/* By the key's bits, highest first: in place, and no order of the input makes it slow. */
static void sort(struct source_function *functions, size_t count, int bit)
{
	assert(functions || !count);
	while (count > SORT_SMALL && bit >= 0) {
		size_t low = 0, high = count;

		while (low < high) {
			if (sort_key(&functions[low]) >> bit & 1)
				swap(&functions[low], &functions[--high]);
			else
				low++;
		}
		bit--;
		sort(functions, low, bit);
		functions += low;
		count -= low;
	}
	sort_small(functions, count);
}

static bool is_sorted(const struct source_list *list)
{
	for (size_t i = 1; i < list->count; i++)
		if (sort_key(&list->functions[i]) < sort_key(&list->functions[i - 1]))
			return false;
	return true;
}

/* Sorts; of functions at one address the longest stays; each ends where the next begins. */
static void finish_list(struct unwind_sources *sources, enum table_source source)
{
	struct source_list *list = &sources->lists[source];
	struct source_function *functions = list->functions;
	size_t kept = 0;

	assert(source < TABLE_SOURCES);
	if (!is_sorted(list))
		sort(functions, list->count, 63);
	for (size_t i = 0; i < list->count; i++) {
		struct source_function *last = kept ? &functions[kept - 1] : NULL;

		if (last && last->start == functions[i].start) {
			sources->stats->duplicates++;
			if (functions[i].length > last->length)
				*last = functions[i];
			continue;
		}
		functions[kept++] = functions[i];
	}
	list->count = kept;
	for (size_t i = 1; i < kept; i++)
		if (functions[i].start - functions[i - 1].start < functions[i - 1].length)
			functions[i - 1].length = functions[i].start - functions[i - 1].start;
	sources->stats->functions[source] = kept;
}

/* ---- sections ---- */

static int check_size(const struct unwind_sources *sources, const struct elf_range *range,
		      struct err *err)
{
	if (range->bytes <= sources->limits->section_bytes)
		return 0;
	return err_set(err, ERR_LIMIT,
		       "build the unwind table of \"%s\": a section of %" PRIu64
		       " bytes, at most %" PRIu64 " allowed",
		       sources->input->name, range->bytes, sources->limits->section_bytes);
}

static void open_range(const struct unwind_sources *sources, const struct elf_range *range,
		       struct section_reader *ret)
{
	elf_range_open(sources->input->fd, sources->input->image, sources->input->name, range, ret);
}

static const struct elf_range *range_of(const struct unwind_sources *sources,
					enum elf_section section)
{
	return &sources->layout.sections[section];
}

/* Bytes of the file from an address up to the end of its segment. */
static bool range_from_address(const struct unwind_sources *sources, uint64_t address,
			       struct elf_range *ret)
{
	const struct elf_info *info = &sources->layout.info;

	for (size_t i = 0; i < info->segments_count; i++) {
		const struct elf_segment *segment = &info->segments[i];
		uint64_t into = address - segment->address;

		if (address < segment->address || into >= segment->file_bytes)
			continue;
		*ret = (struct elf_range){ segment->offset + into, segment->file_bytes - into,
					   address };
		return true;
	}
	return false;
}

static int open_cfi(struct unwind_sources *sources, const struct elf_range *range,
		    enum cfi_kind kind, struct cfi **ret, struct err *err)
{
	int status = check_size(sources, range, err);

	if (status)
		return status;
	open_range(sources, range, &sources->scratch);
	*ret = mem_new(struct cfi);
	return cfi_open(*ret, kind, sources->layout.info.machine, &sources->scratch, err);
}

/* Without section headers .eh_frame has no length; its header has a table, or zeros end it. */
static int list_eh_frame_by_header(struct unwind_sources *sources,
				   const struct unwind_function_sink *sink, struct err *err)
{
	struct section_reader *header = &sources->scratch;
	struct elf_range range;
	uint64_t address;
	int status = check_size(sources, range_of(sources, ELF_SECTION_EH_FRAME_HDR), err);

	if (status)
		return status;
	open_range(sources, range_of(sources, ELF_SECTION_EH_FRAME_HDR), header);
	status = cfi_header_target(header, &address, err);
	if (status)
		return status;
	if (!range_from_address(sources, address, &range))
		return err_set(err, ERR_INVALID, "\"%s\": .eh_frame is not in the file",
			       sources->input->name);
	if (range.bytes > sources->limits->section_bytes)
		range.bytes = sources->limits->section_bytes;
	status = open_cfi(sources, &range, CFI_EH_FRAME, &sources->eh_frame, err);
	if (status)
		return status;
	open_range(sources, range_of(sources, ELF_SECTION_EH_FRAME_HDR), header);
	status = cfi_list_by_header(sources->eh_frame, header, sink, err);
	return status == -ERR_UNSUPPORTED ? cfi_list(sources->eh_frame, true, sink, err) : status;
}

static int list_eh_frame(struct unwind_sources *sources, const struct unwind_function_sink *sink,
			 struct err *err)
{
	const struct elf_range *range = range_of(sources, ELF_SECTION_EH_FRAME);
	int status;

	if (!range->bytes && range_of(sources, ELF_SECTION_EH_FRAME_HDR)->bytes)
		return list_eh_frame_by_header(sources, sink, err);
	if (!range->bytes)
		return 0;
	status = open_cfi(sources, range, CFI_EH_FRAME, &sources->eh_frame, err);
	return status ? status : cfi_list(sources->eh_frame, false, sink, err);
}

static int list_debug_frame(struct unwind_sources *sources, const struct unwind_function_sink *sink,
			    struct err *err)
{
	const struct elf_range *range = range_of(sources, ELF_SECTION_DEBUG_FRAME);
	int status;

	if (!range->bytes)
		return 0;
	status = open_cfi(sources, range, CFI_DEBUG_FRAME, &sources->debug_frame, err);
	return status ? status : cfi_list(sources->debug_frame, false, sink, err);
}

static int list_gopclntab(struct unwind_sources *sources, const struct unwind_function_sink *sink,
			  struct err *err)
{
	int status = go_table_open(sources->input, &sources->layout, sources->limits->section_bytes,
				   &sources->gopclntab, err);

	return status || !sources->gopclntab ? status
					     : gopclntab_functions(sources->gopclntab, sink, err);
}

static int list_sframe(struct unwind_sources *sources, const struct unwind_function_sink *sink,
		       struct err *err)
{
	const struct elf_range *range = range_of(sources, ELF_SECTION_SFRAME);
	int status;

	if (!range->bytes)
		return 0;
	status = check_size(sources, range, err);
	if (status)
		return status;
	open_range(sources, range, &sources->scratch);
	sources->sframe = mem_new(struct sframe);
	status = sframe_open(sources->sframe, &sources->scratch, sources->layout.info.machine, err);
	return status ? status : sframe_functions(sources->sframe, sink, err);
}

/* ---- code without unwind information ---- */

static int list_plt(struct unwind_sources *sources, const struct unwind_function_sink *sink,
		    struct err *err)
{
	static const enum elf_section places[] = { ELF_SECTION_PLT, ELF_SECTION_PLT_SEC,
						   ELF_SECTION_PLT_GOT, ELF_SECTION_IPLT };
	int status = 0;

	for (size_t i = 0; !status && i < sizeof(places) / sizeof(places[0]); i++) {
		const struct elf_range *range = range_of(sources, places[i]);
		const uint8_t *code;
		enum plt_form form;
		size_t have;

		if (!range->bytes)
			continue;
		open_range(sources, range, &sources->scratch);
		status = section_reader_view_some(&sources->scratch, 0, PLT_CODE_BYTES, &code,
						  &have, err);
		if (status)
			break;
		form = plt_form_of(sources->layout.info.machine, places[i] == ELF_SECTION_PLT, code,
				   have);
		if (form != PLT_UNKNOWN)
			status = sink->function(sink->context, range->address,
						range->address + range->bytes, form);
	}
	return status;
}

/* The first function that ends behind `offset`, or count. */
static size_t first_behind(const struct source_list *list, uint64_t offset)
{
	const struct source_function *functions = list->functions;

	assert(functions || !list->count);
	return bisect(0, list->count, i,
		      (uint64_t)functions[i].start + functions[i].length <= offset);
}

/* Where the code that starts at `offset` ends: with the function around it, or before the next. */
static uint64_t end_of_code(const struct unwind_sources *sources, uint64_t offset)
{
	uint64_t end = offset + START_BYTES_MAX;

	for (int source = TABLE_SOURCE_START + 1; source < TABLE_SOURCES; source++) {
		const struct source_list *list = &sources->lists[source];
		size_t i = first_behind(list, offset);

		if (i == list->count)
			continue;
		if (list->functions[i].start <= offset)
			return (uint64_t)list->functions[i].start + list->functions[i].length;
		if (list->functions[i].start < end)
			end = list->functions[i].start;
	}
	return end;
}

static int list_clone(struct unwind_sources *sources, const struct unwind_function_sink *sink,
		      struct err *err)
{
	const struct elf_info *info = &sources->layout.info;

	for (size_t i = 0; i < info->segments_count; i++) {
		const struct elf_segment *segment = &info->segments[i];
		struct elf_range range = { segment->offset, segment->file_bytes, segment->address };
		uint64_t offset, bytes;
		int status;

		if (!segment->executable)
			continue;
		open_range(sources, &range, &sources->scratch);
		status = thread_start_find_clone(&sources->scratch, &offset, &bytes, err);
		if (status == -ERR_NOT_FOUND)
			continue;
		return status ? status
			      : sink->function(sink->context, range.address + offset,
					       range.address + offset + bytes, 0);
	}
	return 0;
}

/* Not called from anywhere: the return address, moved back by one, lies before its first byte. */
static int list_contexts(struct unwind_sources *sources, const struct unwind_function_sink *sink,
			 struct err *err)
{
	const struct source_list *list = &sources->lists[TABLE_SOURCE_EH_FRAME];
	int status = 0;

	for (size_t i = 0; !status && i < list->count; i++) {
		const struct source_function *function = &list->functions[i];
		struct elf_range range = { function->start, function->length, 0 };
		const uint8_t *code;
		size_t have;

		if (function->length != THREAD_START_CONTEXT_BYTES ||
		    !elf_offset_to_address(&sources->layout.info, range.offset, &range.address))
			continue;
		open_range(sources, &range, &sources->scratch);
		status = section_reader_view_some(&sources->scratch, 0, THREAD_START_CODE_BYTES,
						  &code, &have, err);
		if (!status && thread_start_is_context(sources->layout.info.machine, code, have))
			status = sink->function(sink->context, range.address - 1,
						range.address + range.bytes, 0);
	}
	return status;
}

/* Of a function, the rule at its start. */
struct first_rule {
	uint64_t offset;
	enum unwind_cfa cfa;
};

static int take_first_rule(void *context, uint64_t offset, const struct unwind_rule *rule)
{
	struct first_rule *first = context;

	if (offset <= first->offset)
		first->cfa = (enum unwind_cfa)rule->cfa;
	return 0;
}

/* Whether the function says that it has no caller. */
static int is_outermost(struct unwind_sources *sources, const struct source_function *function,
			bool *ret, struct err *err)
{
	struct first_rule first = { .offset = function->start, .cfa = UNWIND_CFA_NONE };
	const struct unwind_row_sink sink = { take_first_rule, &first };
	int status = unwind_sources_rows(sources, TABLE_SOURCE_EH_FRAME, function, &sink, err);

	*ret = first.cfa == UNWIND_CFA_END;
	return status;
}

/*
 * Lists the code before what a new thread runs (`thread`), if it is the system call that made it.
 * Without that it would count as padding of the function before, which has a caller.
 */
static int list_new_thread(struct unwind_sources *sources, const struct source_function *thread,
			   struct elf_range *range, const struct unwind_function_sink *sink,
			   struct err *err)
{
	const uint8_t *code;
	bool is_start;
	size_t have;
	int status;

	open_range(sources, range, &sources->scratch);
	status = section_reader_view_some(&sources->scratch, 0, range->bytes, &code, &have, err);
	if (status || have < range->bytes ||
	    !thread_start_is_clone(sources->layout.info.machine, code, have))
		return status;
	status = is_outermost(sources, thread, &is_start, err);
	if (status || !is_start)
		return status;
	return sink->function(sink->context, range->address, range->address + range->bytes,
			      START_CLONE);
}

static int list_new_threads(struct unwind_sources *sources, const struct unwind_function_sink *sink,
			    struct err *err)
{
	const struct source_list *list = &sources->lists[TABLE_SOURCE_EH_FRAME];
	int status = 0;

	for (size_t i = 1; !status && i < list->count; i++) {
		const struct source_function *before = &list->functions[i - 1];
		const struct source_function *thread = &list->functions[i];
		uint64_t end = (uint64_t)before->start + before->length;
		struct elf_range range = { end, thread->start - end, 0 };

		if ((range.bytes != THREAD_START_CLONE_BYTES &&
		     range.bytes != THREAD_START_CLONE_FAR_BYTES) ||
		    thread->length > NEW_THREAD_BYTES_MAX ||
		    !elf_offset_to_address(&sources->layout.info, range.offset, &range.address))
			continue;
		status = list_new_thread(sources, thread, &range, sink, err);
	}
	return status;
}

static int list_start(struct unwind_sources *sources, const struct unwind_function_sink *sink,
		      struct err *err)
{
	const struct elf_layout *layout = &sources->layout;
	struct source_function start;
	struct elf_range range;
	const uint8_t *code;
	bool is_musl;
	size_t have;
	int status;

	status = list_contexts(sources, sink, err);
	if (!status)
		status = list_new_threads(sources, sink, err);
	if (status || !layout->entry ||
	    !locate(sources, layout->entry, layout->entry + 1, &start) ||
	    !range_from_address(sources, layout->entry, &range))
		return status;
	open_range(sources, &range, &sources->scratch);
	status = section_reader_view_some(&sources->scratch, 0, THREAD_START_CODE_BYTES, &code,
					  &have, err);
	if (status || !thread_start_is_entry(layout, code, have))
		return status;
	is_musl = thread_start_is_musl(layout->info.machine, code, have);
	status = sink->function(sink->context, layout->entry,
				layout->entry + (end_of_code(sources, start.start) - start.start),
				0);
	return status || !is_musl ? status : list_clone(sources, sink, err);
}

/* ---- all of them ---- */

typedef int list_source_f(struct unwind_sources *, const struct unwind_function_sink *,
			  struct err *);

static list_source_f *const listers[TABLE_SOURCES] = {
	[TABLE_SOURCE_START] = list_start,	 [TABLE_SOURCE_GOPCLNTAB] = list_gopclntab,
	[TABLE_SOURCE_EH_FRAME] = list_eh_frame, [TABLE_SOURCE_DEBUG_FRAME] = list_debug_frame,
	[TABLE_SOURCE_SFRAME] = list_sframe,	 [TABLE_SOURCE_PLT] = list_plt,
};

/* A source that makes no sense, or is of a kind we do not know, leaves what it listed until then.
 */
static int list_source(struct unwind_sources *sources, enum table_source source, struct err *err)
{
	struct listing listing = { sources, source, err };
	struct unwind_function_sink sink = { add_function, &listing };
	int status = listers[source](sources, &sink, err);

	if (status == -ERR_INVALID || status == -ERR_UNSUPPORTED || status == -ERR_NOT_FOUND) {
		sources->stats->malformed++;
		status = 0;
	}
	if (!status)
		finish_list(sources, source);
	return status;
}

int unwind_sources_open(const struct table_input *input, const struct table_limits *limits,
			struct table_stats *stats, struct unwind_sources **ret, struct err *err)
{
	struct unwind_sources *sources = mem_new(struct unwind_sources);
	int status;

	sources->input = input;
	sources->limits = limits;
	sources->stats = stats;
	status = elf_layout_read(input->fd, input->image, input->name, &sources->layout, err);
	/* The starts come last: they end where another source's functions begin. */
	for (int source = TABLE_SOURCES - 1; !status && source >= 0; source--)
		status = list_source(sources, (enum table_source)source, err);
	if (status)
		unwind_sources_free(sources);
	else
		*ret = sources;
	return status;
}

void unwind_sources_free(struct unwind_sources *sources)
{
	if (!sources)
		return;
	for (size_t i = 0; i < TABLE_SOURCES; i++)
		free(sources->lists[i].functions);
	free(sources->eh_frame);
	free(sources->debug_frame);
	free(sources->gopclntab);
	free(sources->sframe);
	free(sources);
}

const struct elf_layout *unwind_sources_layout(const struct unwind_sources *sources)
{
	return &sources->layout;
}

const struct source_list *unwind_sources_list(const struct unwind_sources *sources,
					      enum table_source source)
{
	return &sources->lists[source];
}

uint64_t unwind_sources_malformed(const struct unwind_sources *sources)
{
	return (sources->eh_frame ? sources->eh_frame->counts.malformed : 0) +
	       (sources->debug_frame ? sources->debug_frame->counts.malformed : 0) +
	       (sources->gopclntab ? sources->gopclntab->damaged_count : 0) +
	       (sources->sframe ? sources->sframe->damaged_count : 0);
}

/* ---- rows ---- */

struct shift {
	const struct unwind_row_sink *sink;
	uint64_t bias; /* address - file offset */
};

static int give_by_offset(void *context, uint64_t address, const struct unwind_rule *rule)
{
	const struct shift *shift = context;

	return shift->sink->row(shift->sink->context, address - shift->bias, rule);
}

static int give_start(const struct unwind_row_sink *sink, uint64_t address, enum start_kind kind)
{
	static const struct unwind_rule rules[] = {
		[START_OUTERMOST] = { .cfa = UNWIND_CFA_END },
		[START_CLONE] = { .cfa = UNWIND_CFA_CLONE,
				  .cfa_register = UNWIND_X86_SP,
				  .cfa_offset = 8,
				  .ra = UNWIND_VALUE_AT_CFA,
				  .ra_offset = -8 },
	};

	assert(kind <= START_CLONE);
	return sink->row(sink->context, address, &rules[kind]);
}

int unwind_sources_rows(struct unwind_sources *sources, enum table_source source,
			const struct source_function *function, const struct unwind_row_sink *sink,
			struct err *err)
{
	struct shift shift = { .sink = sink };
	struct unwind_row_sink by_address = { give_by_offset, &shift };
	uint64_t address = 0;

	assert(source < TABLE_SOURCES);
	elf_offset_to_address(&sources->layout.info, function->start, &address);
	shift.bias = address - function->start;
	switch (source) {
	case TABLE_SOURCE_START:
		return give_start(&by_address, address, (enum start_kind)function->cookie);
	case TABLE_SOURCE_GOPCLNTAB:
		return gopclntab_rows(sources->gopclntab, function->cookie, &by_address, err);
	case TABLE_SOURCE_EH_FRAME:
		return cfi_rows(sources->eh_frame, function->cookie, &by_address, err);
	case TABLE_SOURCE_DEBUG_FRAME:
		return cfi_rows(sources->debug_frame, function->cookie, &by_address, err);
	case TABLE_SOURCE_SFRAME:
		return sframe_rows(sources->sframe, function->cookie, &by_address, err);
	case TABLE_SOURCE_PLT:
		return plt_rows(sources->layout.info.machine, (enum plt_form)function->cookie,
				address, &by_address);
	default:
		return 0;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The part of normalise.h about frames: where an address lies, and what kind of code it is. */
#include "codec/wire/utf8.h"
#include "server/ingest/normalise.h"

static bool ends_with(struct slice text, struct slice end)
{
	return text.len >= end.len && slice_equal(slice_tail(text, text.len - end.len), end);
}

static struct slice base_name(struct slice path)
{
	for (size_t i = path.len; i; i--)
		if (path.data[i - 1] == '/')
			return slice_tail(path, i);
	return path;
}

/* perf writes "[kernel.kallsyms]_stext", others the name of the image. */
static bool is_kernel_image(struct slice file)
{
	struct slice base = base_name(file);

	return slice_is(file, "[kernel]") ||
	       slice_starts_with(file, SLICE_LITERAL("[kernel.kallsyms]")) ||
	       slice_is(base, "vmlinux") || slice_starts_with(base, SLICE_LITERAL("vmlinux-"));
}

/* The length of a kernel module's name, or 0: nf_tables.ko, nf_tables.ko.xz. */
static size_t module_name_bytes(struct slice base)
{
	static const char *const ends[] = { ".ko", ".ko.xz", ".ko.zst", ".ko.gz" };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (base.len > strlen(ends[i]) && ends_with(base, slice_of(ends[i])))
			return base.len - strlen(ends[i]);
	return 0;
}

static uint32_t bracketed(struct normaliser *n, struct slice name)
{
	struct strbuf text = { 0 };
	uint32_t id;

	strbuf_add_byte(&text, '[');
	strbuf_add_slice(&text, utf8_cut(name, n->limits->string_bytes_max));
	strbuf_add_byte(&text, ']');
	id = normalise_text(n, strbuf_slice(&text));
	strbuf_free(&text);
	return id;
}

/* Kernel code gets one spelling: "[kernel]", and modules "[name]". */
static uint32_t mapping_file(struct normaliser *n, struct slice file, uint32_t *kind)
{
	struct slice base = base_name(file);
	size_t module = module_name_bytes(base);

	if (is_kernel_image(file)) {
		*kind = FRAME_KERNEL;
		return normalise_text(n, SLICE_LITERAL("[kernel]"));
	}
	if (module) {
		*kind = FRAME_KERNEL;
		return bracketed(n, slice_from(base.data, module));
	}
	if (slice_is(file, "//anon") || slice_is(file, "anon"))
		return normalise_text(n, SLICE_LITERAL("[anon]"));
	if (*kind == FRAME_KERNEL && file.len && file.data[0] != '[' && file.data[0] != '/')
		return bracketed(n, file);
	return normalise_text(n, file);
}

static bool is_hex(struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')))
			return false;
	}
	return true;
}

/* Hex in lower case, so that one binary has one id; others (Go's own ids) as they are. */
static uint32_t build_id(struct normaliser *n, struct slice text)
{
	struct strbuf lower = { 0 };
	uint32_t id;

	if (!is_hex(text))
		return normalise_text(n, text);
	strbuf_add_slice(&lower, text);
	for (size_t i = 0; i < lower.len; i++)
		if (lower.data[i] >= 'A' && lower.data[i] <= 'F')
			lower.data[i] = (char)(lower.data[i] - 'A' + 'a');
	id = normalise_text(n, strbuf_slice(&lower));
	strbuf_free(&lower);
	return id;
}

/* Addresses in memory become file offsets, which are the same wherever the file is mapped. */
static void place_address(const struct normalise_place *place, struct frame *frame)
{
	bool below = place->address < place->memory_start;
	bool beyond = place->memory_limit && place->address >= place->memory_limit;

	frame->address = place->address;
	if (!place->has_mapping || !place->address || frame->kind == FRAME_KERNEL ||
	    (!place->memory_start && !place->memory_limit))
		return;
	if (below || beyond) {
		repairs_count(REPAIR_ADDRESS, 1);
		return;
	}
	frame->address = place->address - place->memory_start + place->file_offset;
	frame->flags |= FRAME_ADDR_OFFSET;
}

struct frame normalise_mapping(struct normaliser *n, const struct normalise_place *place)
{
	struct frame frame = { .kind = place->kind };

	if (place->has_mapping) {
		frame.mapping_file = mapping_file(n, place->mapping_file, &frame.kind);
		frame.build_id = build_id(n, place->build_id);
	}
	return frame;
}

struct frame normalise_place(const struct frame *mapping, const struct normalise_place *place)
{
	struct frame frame = *mapping;

	place_address(place, &frame);
	return frame;
}

static struct slice text_of(const struct normaliser *n, uint32_t string)
{
	struct tables_view view = tables_view_of(n->into);

	return tables_text(&view, string);
}

/* Go's compiler leaves source names as no other does: package paths and .go files. */
static bool looks_like_go(const struct normaliser *n, const struct normalise_line *line)
{
	struct slice file = text_of(n, line->file);

	if (ends_with(file, SLICE_LITERAL(".go")))
		return true;
	return ends_with(file, SLICE_LITERAL(".s")) &&
	       slice_find_byte(text_of(n, line->function), '.') != SIZE_MAX;
}

static uint32_t small_number(int64_t number)
{
	if (number >= 0 && number <= UINT32_MAX)
		return (uint32_t)number;
	repairs_count(REPAIR_LINE_NUMBER, 1);
	return 0;
}

static uint32_t add_frame(struct normaliser *n, const struct frame *frame)
{
	uint32_t id =
		n->places_differ ? tables_add_frame(n->into, frame) : tables_frame(n->into, frame);

	if (id != TABLES_FULL)
		return id;
	n->problem = "the batch is full";
	return 0;
}

uint32_t normalise_line_frame(struct normaliser *n, const struct frame *place,
			      const struct normalise_line *line)
{
	struct frame frame = *place;

	frame.function = line->function ? line->function : line->system_name;
	frame.system_name = line->system_name == frame.function ? 0 : line->system_name;
	frame.file = line->file;
	frame.line = small_number(line->line);
	frame.column = small_number(line->column);
	frame.start_line = small_number(line->start_line);
	if (line->inlined)
		frame.flags |= FRAME_INLINED;
	if (!frame.function) {
		repairs_count(REPAIR_FUNCTION_ID, 1);
		return normalise_bare_frame(n, &frame);
	}
	if (frame.kind == FRAME_UNKNOWN && looks_like_go(n, line))
		frame.kind = FRAME_GO;
	if (frame.kind == FRAME_UNKNOWN && frame.address)
		frame.kind = FRAME_NATIVE;
	return add_frame(n, &frame);
}

uint32_t normalise_bare_place(struct normaliser *n, const struct frame *mapping,
			      const struct normalise_place *place)
{
	struct frame *made, frame;
	uint32_t id;

	if (!n->places_differ || !place->address) {
		frame = normalise_place(mapping, place);
		return normalise_bare_frame(n, &frame);
	}
	made = tables_new_frame(n->into, mapping, &id);
	if (!made) {
		n->problem = "the batch is full";
		return 0;
	}
	place_address(place, made);
	if (made->kind == FRAME_UNKNOWN && made->address)
		made->kind = FRAME_NATIVE;
	return id;
}

uint32_t normalise_bare_frame(struct normaliser *n, const struct frame *place)
{
	struct frame frame = *place;

	if (frame.kind == FRAME_UNKNOWN && frame.address)
		frame.kind = FRAME_NATIVE;
	if (!frame.address && !frame.function && !frame.mapping_file)
		frame.function = normalise_text(n, SLICE_LITERAL("[unknown]"));
	return add_frame(n, &frame);
}

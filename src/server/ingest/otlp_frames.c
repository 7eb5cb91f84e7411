/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ingest/otlp_frames.h"

#include "codec/wire/pb.h"

#define ATTRIBUTES_LOOKED_AT_MAX 64 /* of one mapping or location; they carry one to three */

/* What an attribute says of a location's kind, besides the values of enum frame_kind. */
#define KIND_NOT_KNOWN UINT8_MAX /* not looked at yet */
#define KIND_NOT_TOLD (UINT8_MAX - 1)

/* Attributes of mappings that hold a build id, the best first. */
static const char *const build_id_keys[] = {
	"process.executable.build_id.gnu",
	"process.executable.build_id.go",
	"process.executable.build_id.htlhash",
};

/* About what is kept besides a request's dictionary. */
static size_t dictionary_bytes(const struct otlp *o)
{
	return (o->strings.count + o->stacks.count) * sizeof(uint32_t) + o->attributes.count +
	       o->locations.count * sizeof(struct chain) +
	       o->mappings.count * sizeof(struct mapping_frame);
}

int otlp_frames_begin(struct ingest_scratch *scratch, struct err *err)
{
	const struct otlp *o = &scratch->otlp;

	scratch->string_ids.count = scratch->chains.count = 0;
	scratch->chain_frames.count = scratch->stack_nodes.count = 0;
	scratch->mapping_frames.count = scratch->frame_kinds.count = 0;
	scratch->last_stack.len = 0;
	if (!COLUMN_ROOM_PAID(&scratch->string_ids, scratch->budget, o->strings.count + 1,
			      UINT32_MAX) ||
	    !COLUMN_ROOM_PAID(&scratch->chains, scratch->budget, o->locations.count + 1,
			      UINT32_MAX) ||
	    !COLUMN_ROOM_PAID(&scratch->stack_nodes, scratch->budget, o->stacks.count + 1,
			      UINT32_MAX) ||
	    !COLUMN_ROOM_PAID(&scratch->mapping_frames, scratch->budget, o->mappings.count + 1,
			      UINT32_MAX) ||
	    !COLUMN_ROOM_PAID(&scratch->frame_kinds, scratch->budget, o->attributes.count + 1,
			      UINT32_MAX))
		return budget_fail(scratch->budget, dictionary_bytes(o), "take OTLP", err);
	memset(scratch->string_ids.data, 0xff, (o->strings.count + 1) * sizeof(uint32_t));
	memset(scratch->chains.data, 0xff, (o->locations.count + 1) * sizeof(struct chain));
	memset(scratch->stack_nodes.data, 0xff, (o->stacks.count + 1) * sizeof(uint32_t));
	memset(scratch->mapping_frames.data, 0,
	       (o->mappings.count + 1) * sizeof(struct mapping_frame));
	memset(scratch->frame_kinds.data, KIND_NOT_KNOWN, o->attributes.count + 1);
	return 0;
}

static struct slice text_at(const struct otlp *o, int64_t index)
{
	bool dangling = false;
	struct slice text = SLICE_LITERAL("");

	if (index)
		text = otlp_string(o, index, &dangling);
	if (dangling)
		repairs_count(REPAIR_STRING_INDEX, 1);
	return text;
}

static uint32_t string_at(struct ingest_scratch *scratch, int64_t index)
{
	uint32_t *id;

	if (index <= 0 || (uint64_t)index >= scratch->otlp.strings.count)
		return normalise_text(&scratch->normaliser, text_at(&scratch->otlp, index));
	id = &scratch->string_ids.data[index];
	if (*id == TABLES_FULL)
		*id = normalise_text(&scratch->normaliser, scratch->otlp.strings.data[index]);
	return *id;
}

/* The text of the attribute with this key, "" when the run has none. */
static int attribute_text(const struct otlp *o, const struct otlp_run *run, const char *key,
			  struct err *err, struct slice *ret)
{
	uint32_t count =
		run->count < ATTRIBUTES_LOOKED_AT_MAX ? run->count : ATTRIBUTES_LOOKED_AT_MAX;

	*ret = SLICE_LITERAL("");
	for (uint32_t i = 0; i < count; i++) {
		uint64_t index = o->numbers.data[run->first + i];
		struct otlp_any value;
		int status;

		if (index >= o->attributes.count) {
			repairs_count(REPAIR_ATTRIBUTE_INDEX, 1);
			continue;
		}
		if (!slice_is(text_at(o, o->attributes.data[index].key_index), key))
			continue;
		status = otlp_any_decode(o, o->attributes.data[index].value, &value, err);
		if (status)
			return status;
		if (value.type == OTLP_TYPE_STRING)
			*ret = value.bytes;
	}
	return 0;
}

/* Whether an attribute is a frame's type, and which. */
static int kind_of_attribute(const struct otlp *o, const struct otlp_attribute *attribute,
			     struct err *err, uint8_t *ret)
{
	struct otlp_any value;
	int status;

	*ret = KIND_NOT_TOLD;
	if (!slice_is(text_at(o, attribute->key_index), "profile.frame.type"))
		return 0;
	status = otlp_any_decode(o, attribute->value, &value, err);
	if (!status && value.type == OTLP_TYPE_STRING)
		*ret = (uint8_t)frame_kind_of(value.bytes);
	return status;
}

/* The kind that a location's attributes tell; each attribute is looked at once per request. */
static int kind_of(struct ingest_scratch *scratch, const struct otlp_run *run, struct err *err,
		   enum frame_kind *ret)
{
	const struct otlp *o = &scratch->otlp;
	uint32_t count =
		run->count < ATTRIBUTES_LOOKED_AT_MAX ? run->count : ATTRIBUTES_LOOKED_AT_MAX;

	*ret = FRAME_UNKNOWN;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t index = o->numbers.data[run->first + i];
		uint8_t *kind;
		int status = 0;

		if (index >= o->attributes.count) {
			repairs_count(REPAIR_ATTRIBUTE_INDEX, 1);
			continue;
		}
		kind = &scratch->frame_kinds.data[index];
		if (*kind == KIND_NOT_KNOWN)
			status = kind_of_attribute(o, &o->attributes.data[index], err, kind);
		if (status)
			return status;
		if (*kind != KIND_NOT_TOLD)
			*ret = *kind;
	}
	return 0;
}

static int build_id_of(const struct otlp *o, const struct otlp_mapping *mapping, struct err *err,
		       struct slice *ret)
{
	for (size_t i = 0; i < sizeof(build_id_keys) / sizeof(build_id_keys[0]); i++) {
		int status = attribute_text(o, &mapping->attributes, build_id_keys[i], err, ret);

		if (status || ret->len)
			return status;
	}
	return 0;
}

/* The mapping's part of a place, made once per request. Index 0 stands for "none". */
static int frame_of_mapping(struct ingest_scratch *scratch, const struct otlp_mapping *mapping,
			    size_t index, struct normalise_place *place, struct err *err,
			    const struct frame **ret)
{
	struct mapping_frame *known = &scratch->mapping_frames.data[index];
	int status = 0;

	*ret = &known->frame;
	if (known->known && known->asked == place->kind)
		return 0;
	if (mapping) {
		place->mapping_file = text_at(&scratch->otlp, mapping->filename);
		status = build_id_of(&scratch->otlp, mapping, err, &place->build_id);
	}
	if (status)
		return status;
	known->frame = normalise_mapping(&scratch->normaliser, place);
	known->asked = place->kind;
	known->known = true;
	return 0;
}

/* Where a location lies, and what its mapping says of that. */
static int place_of(struct ingest_scratch *scratch, const struct otlp_location *location,
		    struct err *err, struct normalise_place *ret, const struct frame **ret_mapping)
{
	const struct otlp *o = &scratch->otlp;
	struct normalise_place place = { .address = location->address };
	const struct otlp_mapping *mapping = NULL;
	size_t index = 0;
	int status = kind_of(scratch, &location->attributes, err, &place.kind);

	if (location->mapping > 0 && (uint64_t)location->mapping < o->mappings.count)
		index = (size_t)location->mapping;
	else if (location->mapping)
		repairs_count(REPAIR_MAPPING_ID, 1);
	if (index) {
		mapping = &o->mappings.data[index];
		place.has_mapping = true;
		place.memory_start = mapping->memory_start;
		place.memory_limit = mapping->memory_limit;
		place.file_offset = mapping->file_offset;
	}
	if (!status)
		status = frame_of_mapping(scratch, mapping, index, &place, err, ret_mapping);
	*ret = place;
	return status;
}

static uint32_t frame_of_line(struct ingest_scratch *scratch, const struct frame *place,
			      const struct otlp_line *line, bool inlined)
{
	const struct otlp *o = &scratch->otlp;
	struct normalise_line source = { .line = line->line,
					 .column = line->column,
					 .inlined = inlined };

	if (line->function > 0 && (uint64_t)line->function < o->functions.count) {
		const struct otlp_function *function = &o->functions.data[line->function];

		source.function = string_at(scratch, function->name);
		source.system_name = string_at(scratch, function->system_name);
		source.file = string_at(scratch, function->filename);
		source.start_line = function->start_line;
	}
	return normalise_line_frame(&scratch->normaliser, place, &source);
}

/* Lines beyond a stack's depth can never be wanted. */
static int make_chain(struct ingest_scratch *scratch, size_t location_id, struct err *err)
{
	const struct otlp_location *location = &scratch->otlp.locations.data[location_id];
	size_t lines = location->line_count,
	       lines_max = scratch->normaliser.limits->stack_depth_max;
	const struct frame *mapping;
	struct normalise_place place;
	struct frame frame;
	uint32_t *frames;
	int status = place_of(scratch, location, err, &place, &mapping);

	if (status)
		return status;
	if (lines > lines_max)
		lines = lines_max + 1;
	if (!COLUMN_ROOM_PAID(&scratch->chain_frames, scratch->budget, lines + 1, UINT32_MAX - 1))
		return budget_fail(scratch->budget, (lines + 1) * sizeof(uint32_t), "take OTLP",
				   err);
	frames = scratch->chain_frames.data + scratch->chain_frames.count;
	if (lines)
		frame = normalise_place(mapping, &place);
	for (size_t i = 0; i < lines; i++)
		frames[i] = frame_of_line(scratch, &frame,
					  &scratch->otlp.lines.data[location->line_first + i],
					  i + 1 < location->line_count);
	if (!lines)
		frames[0] = normalise_bare_place(&scratch->normaliser, mapping, &place);
	scratch->chains.data[location_id] = (struct chain){ (uint32_t)scratch->chain_frames.count,
							    lines ? (uint32_t)lines : 1 };
	scratch->chain_frames.count += lines ? lines : 1;
	return 0;
}

static uint32_t unknown_frame(struct ingest_scratch *scratch, enum repair repair)
{
	struct frame nothing = { 0 };

	repairs_count(repair, 1);
	return normalise_bare_frame(&scratch->normaliser, &nothing);
}

/* Adds a location's frames; *ret_more is false when the stack is full. */
static int add_location(struct ingest_scratch *scratch, uint64_t index, struct err *err,
			bool *ret_more)
{
	struct normaliser *n = &scratch->normaliser;
	struct chain *chain;
	int status = 0;

	if (!index || index >= scratch->otlp.locations.count) {
		scratch->unknown_place = true;
		*ret_more = normalise_stack_frame(n, unknown_frame(scratch, REPAIR_LOCATION_ID));
		return 0;
	}
	chain = &scratch->chains.data[index];
	if (chain->first == CHAIN_NOT_MADE)
		status = make_chain(scratch, index, err);
	*ret_more = !status;
	for (uint32_t i = 0; *ret_more && i < chain->count; i++)
		*ret_more = normalise_stack_frame(n, scratch->chain_frames.data[chain->first + i]);
	return status;
}

/* Bytes that both end with, whole numbers only. */
static size_t shared_bytes(struct slice a, struct slice b)
{
	size_t most = a.len < b.len ? a.len : b.len, shared = 0;
	uint64_t word, other;

	for (; most - shared >= sizeof(word); shared += sizeof(word)) {
		memcpy(&word, a.data + a.len - shared - sizeof(word), sizeof(word));
		memcpy(&other, b.data + b.len - shared - sizeof(word), sizeof(word));
		if (word != other)
			break;
	}
	while (shared < most && a.data[a.len - shared - 1] == b.data[b.len - shared - 1])
		shared++;
	/* The number that the first of them belongs to may have begun before. */
	if ((a.len > shared && a.data[a.len - shared - 1] & 0x80) ||
	    (b.len > shared && b.data[b.len - shared - 1] & 0x80)) {
		while (shared && a.data[a.len - shared] & 0x80)
			shared--;
		shared -= shared > 0;
	}
	return shared;
}

static size_t count_numbers(const char *packed, size_t len)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		count += !(packed[i] & 0x80);
	return count;
}

/*
 * The places of a stack that it has not in common with the one before it, to scratch->places; how
 * many it has, counted from the root, to *ret_shared. None with one that leads nowhere (each of
 * these is counted), and none where the stack may be cut off, on its root side.
 */
static int read_places(struct ingest_scratch *scratch, const struct otlp_stack *stack,
		       struct err *err, size_t *ret_shared)
{
	struct normaliser *n = &scratch->normaliser;
	struct slice packed = stack->packed, last = scratch->last_stack;
	size_t most = (n->limits->stack_depth_max + 1) * PB_VARINT_BYTES_MAX, shared = 0;
	bool whole = true;

	*ret_shared = 0;
	if (packed.len <= n->limits->stack_depth_max)
		shared = shared_bytes(packed, last);
	if (shared)
		*ret_shared = n->path_count - count_numbers(last.data, last.len - shared);
	packed.len -= shared;
	if (packed.len > most) { /* what follows is not wanted */
		while (packed.data[most - 1] & 0x80 && most < packed.len)
			most++;
		packed.len = most;
	}
	scratch->places.count = 0;
	if (!COLUMN_ROOM_PAID(&scratch->places, scratch->budget, packed.len + 1, UINT32_MAX))
		return budget_fail(scratch->budget, packed.len * sizeof(uint64_t), "take OTLP",
				   err);
	scratch->places.count = pb_varints(packed, scratch->places.data, &whole);
	return whole ? 0
		     : err_set(err, ERR_INVALID, "take OTLP: a stack has broken location indexes");
}

static int add_places(struct ingest_scratch *scratch, const uint64_t *places, size_t count,
		      struct err *err)
{
	bool more = true;
	int status = 0;

	for (size_t i = 0; more && i < count && !status; i++)
		status = add_location(scratch, places[i], err, &more);
	return status;
}

/* True if each place of the stack made last was one frame. */
static bool is_plain(const struct ingest_scratch *scratch, size_t shared)
{
	const struct normaliser *n = &scratch->normaliser;

	return !n->problem && !n->stack_cut && !scratch->unknown_place &&
	       n->path_count == scratch->places.count + shared;
}

static int make_stack(struct ingest_scratch *scratch, const struct otlp_stack *stack,
		      struct err *err, uint32_t *ret)
{
	struct normaliser *n = &scratch->normaliser;
	const uint64_t *apart = scratch->otlp.numbers.data + stack->apart.first;
	size_t shared = 0;
	int status = read_places(scratch, stack, err, &shared);

	if (status)
		return status;
	normalise_stack_begin_shared(n, shared);
	scratch->unknown_place = false;
	status = stack->packed.len
			 ? add_places(scratch, scratch->places.data, scratch->places.count, err)
			 : add_places(scratch, apart, stack->apart.count, err);
	if (status)
		return status;
	*ret = normalise_stack_end(n);
	scratch->last_stack = is_plain(scratch, shared) ? stack->packed : SLICE_LITERAL("");
	return 0;
}

int otlp_frames_stack(struct ingest_scratch *scratch, int64_t index, struct err *err, uint32_t *ret)
{
	struct normaliser *n = &scratch->normaliser;
	uint32_t *node;

	if (!index) {
		*ret = 0;
		return 0;
	}
	if (index < 0 || (uint64_t)index >= scratch->otlp.stacks.count) {
		scratch->last_stack.len = 0;
		normalise_stack_begin(n);
		normalise_stack_frame(n, unknown_frame(scratch, REPAIR_STACK_INDEX));
		*ret = normalise_stack_end(n);
		return 0;
	}
	node = &scratch->stack_nodes.data[index];
	if (*node == TABLES_FULL) {
		int status = make_stack(scratch, &scratch->otlp.stacks.data[index], err, node);

		if (status)
			return status;
	}
	*ret = *node;
	return 0;
}

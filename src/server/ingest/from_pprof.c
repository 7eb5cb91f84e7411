/* SPDX-License-Identifier: Apache-2.0 */
/* The door for pprof: gzip, wire, ids and string indexes; the rest is done by normalise. */
#include <endian.h>

#include "base/hash.h"
#include "server/ingest/scratch_int.h"

#define INFLATE_FIRST_FACTOR 8u /* gzip's output that is paid for at first, by its bytes */
#define INFLATE_FIRST_BYTES ((size_t)64 << 10)
#define INFLATE_NEXT_FACTOR 2u
#define ELEMENTS_PER_SAMPLE 16 /* of the decoder's limit per column, over samples_max */

/* Labels that are times and links of samples. */
enum told { TOLD_TIME, TOLD_SPAN, TOLD_ROOT, TOLD_KINDS };
static const char *const told_names[TOLD_KINDS] = { "end_timestamp_ns", "span id",
						    "local root span id" };

struct door {
	struct ingest_scratch *scratch;
	struct normaliser *n;
	const struct pprof *p;
	const struct ingest_limits *limits;
	const struct ingest_pprof *input;
	struct err *err;
	const struct pprof_sample *plain; /* the last, if each of its places was one frame */
	bool unknown;			  /* the stack at hand has a place that is not there */

	/* the sample types that become one report, by their index in the profile */
	uint32_t types[TABLES_COLUMNS_PER_GROUP_MAX];
	uint32_t types_count;
	struct slice name; /* of these */

	int64_t told_keys[TOLD_KINDS]; /* string indexes of Datadog's keys; 0: not there */
	int64_t start_ns;
};

static uint64_t element_id(const struct id_index *index, uint32_t element)
{
	uint64_t id;

	memcpy(&id, index->elements + element * index->element_bytes, sizeof(id));
	return id;
}

static bool id_equal(const void *context, uint32_t element, const void *key)
{
	return element_id(context, element) == *(const uint64_t *)key;
}

/* `elements` begin with their 64-bit id; there may be none. */
static void index_ids(struct id_index *index, const void *elements, size_t count,
		      size_t element_bytes)
{
	idmap_clear(&index->map);
	index->elements = elements;
	index->element_bytes = element_bytes;
	index->count = count;
	index->dense = true;
	for (size_t i = 0; i < count && index->dense; i++)
		index->dense = element_id(index, (uint32_t)i) == i + 1;
	if (index->dense)
		return;
	for (size_t i = 0; i < count; i++) {
		uint64_t id = element_id(index, (uint32_t)i);
		uint64_t hash = hash_bytes(&id, sizeof(id));

		if (idmap_find(&index->map, hash, id_equal, index, &id) == IDMAP_NONE)
			idmap_add(&index->map, hash, (uint32_t)i);
		else
			repairs_count(REPAIR_DUPLICATE_ID, 1);
	}
}

static uint32_t find_sparse_id(const struct id_index *index, uint64_t id)
{
	return idmap_find(&index->map, hash_bytes(&id, sizeof(id)), id_equal, index, &id);
}

/* The element, or IDMAP_NONE. Id 0 means "none" and never finds one. */
static inline uint32_t find_id(const struct id_index *index, uint64_t id)
{
	if (index->dense)
		return id - 1 < index->count ? (uint32_t)(id - 1) : IDMAP_NONE;
	return !id ? IDMAP_NONE : find_sparse_id(index, id);
}

static struct slice text_at(const struct door *door, int64_t index)
{
	if (!index)
		return SLICE_LITERAL("");
	if (index > 0 && (uint64_t)index < door->p->strings.count)
		return door->p->strings.data[index];
	repairs_count(REPAIR_STRING_INDEX, 1);
	return SLICE_LITERAL("");
}

/* The interned string; each is repaired and looked up once. */
static uint32_t string_at(const struct door *door, int64_t index)
{
	uint32_t *id;

	if (index <= 0 || (uint64_t)index >= door->p->strings.count)
		return normalise_text(door->n, text_at(door, index));
	id = &door->scratch->string_ids.data[index];
	if (*id == TABLES_FULL)
		*id = normalise_text(door->n, door->p->strings.data[index]);
	return *id;
}

/* Where a location lies; what its mapping says of that. */
static const struct frame *place_of(const struct door *door, const struct pprof_location *location,
				    struct normalise_place *ret)
{
	static const struct frame nothing = { 0 };
	uint32_t id = find_id(&door->scratch->mapping_index, location->mapping_id);
	struct normalise_place place = { .address = location->address };
	const struct pprof_mapping *mapping;
	struct mapping_frame *known;

	*ret = place;
	if (id == IDMAP_NONE) {
		if (location->mapping_id)
			repairs_count(REPAIR_MAPPING_ID, 1);
		return &nothing;
	}
	mapping = &door->p->mappings.data[id];
	ret->has_mapping = true;
	ret->memory_start = mapping->memory_start;
	ret->memory_limit = mapping->memory_limit;
	ret->file_offset = mapping->file_offset;
	known = &door->scratch->mapping_frames.data[id];
	if (!known->known) {
		ret->mapping_file = text_at(door, mapping->filename);
		ret->build_id = text_at(door, mapping->build_id);
		known->frame = normalise_mapping(door->n, ret);
		known->known = true;
	}
	return &known->frame;
}

static uint32_t frame_of_line(const struct door *door, const struct frame *place,
			      const struct pprof_line *line, bool inlined)
{
	struct normalise_line source = { .line = line->line,
					 .column = line->column,
					 .inlined = inlined };
	uint32_t id = find_id(&door->scratch->function_index, line->function_id);

	if (id != IDMAP_NONE) {
		const struct pprof_function *function = &door->p->functions.data[id];

		source.function = string_at(door, function->name);
		source.system_name = string_at(door, function->system_name);
		source.file = string_at(door, function->filename);
		source.start_line = function->start_line;
	}
	return normalise_line_frame(door->n, place, &source);
}

/* Lines beyond a stack's depth can never be wanted. */
static void make_chain(const struct door *door, uint32_t location_id, struct chain *chain)
{
	const struct pprof_location *location = &door->p->locations.data[location_id];
	struct ingest_scratch *scratch = door->scratch;
	size_t lines = location->line_count;
	struct normalise_place place;
	const struct frame *mapping = place_of(door, location, &place);
	struct frame frame;

	if (lines > door->limits->stack_depth_max + 1)
		lines = door->limits->stack_depth_max + 1;
	chain->first = (uint32_t)scratch->chain_frames.count;
	chain->count = 0;
	if (!COLUMN_ROOM_PAID(&scratch->chain_frames, scratch->budget, lines + 1, UINT32_MAX - 1)) {
		door->n->problem = "the locations have too many lines for the memory";
		return;
	}
	if (lines)
		frame = normalise_place(mapping, &place);
	for (size_t i = 0; i < lines; i++) {
		const struct pprof_line *line = &door->p->lines.data[location->line_first + i];

		scratch->chain_frames.data[chain->first + i] =
			frame_of_line(door, &frame, line, i + 1 < location->line_count);
	}
	if (!lines)
		scratch->chain_frames.data[chain->first] =
			normalise_bare_place(door->n, mapping, &place);
	chain->count = lines ? (uint32_t)lines : 1;
	scratch->chain_frames.count += chain->count;
}

static uint32_t unknown_frame(const struct door *door)
{
	struct frame nothing = { 0 };

	repairs_count(REPAIR_LOCATION_ID, 1);
	return normalise_bare_frame(door->n, &nothing);
}

/* Adds the frames of a location; false when the stack is full. */
static bool add_location(struct door *door, uint64_t id)
{
	struct ingest_scratch *scratch = door->scratch;
	uint32_t location = find_id(&scratch->location_index, id);
	struct chain *chain;

	if (location == IDMAP_NONE) {
		door->unknown = true;
		return normalise_stack_frame(door->n, unknown_frame(door));
	}
	chain = &scratch->chains.data[location];
	if (chain->first == CHAIN_NOT_MADE)
		make_chain(door, location, chain);
	for (uint32_t i = 0; i < chain->count; i++)
		if (!normalise_stack_frame(door->n, scratch->chain_frames.data[chain->first + i]))
			return false;
	return true;
}

/* Places that the sample has in common with the one before it, counted from the root. */
static uint32_t shared_places(const struct door *door, const struct pprof_sample *sample)
{
	const struct pprof_sample *last = door->plain;
	const uint64_t *end =
		door->p->location_ids.data + sample->location_first + sample->location_count;
	const uint64_t *last_end;
	uint32_t most = sample->location_count, shared = 0;

	if (!last || most > door->limits->stack_depth_max)
		return 0; /* what is cut off is its root side */
	if (most > last->location_count)
		most = last->location_count;
	last_end = door->p->location_ids.data + last->location_first + last->location_count;
	while (shared < most && *--end == *--last_end)
		shared++;
	return shared;
}

static uint32_t stack_of(struct door *door, const struct pprof_sample *sample)
{
	const uint64_t *ids = door->p->location_ids.data + sample->location_first;
	const struct normaliser *n = door->n;
	uint32_t shared = shared_places(door, sample), node;

	door->unknown = false;
	normalise_stack_begin_shared(door->n, shared);
	for (uint32_t i = 0; i < sample->location_count - shared; i++)
		if (!add_location(door, ids[i]))
			break;
	node = normalise_stack_end(door->n);
	door->plain = NULL;
	if (!n->problem && !n->stack_cut && !door->unknown &&
	    n->path_count == sample->location_count)
		door->plain = sample;
	return node;
}

static void find_told_keys(struct door *door)
{
	const struct pprof *p = door->p;

	for (int kind = 0; kind < TOLD_KINDS && door->input->datadog_labels; kind++)
		for (size_t i = 1; i < p->strings.count && !door->told_keys[kind]; i++)
			if (slice_is(p->strings.data[i], told_names[kind]))
				door->told_keys[kind] = (int64_t)i;
}

/* Which of these a label is, or TOLD_KINDS. */
static enum told told_kind(const struct door *door, const struct pprof_label *label)
{
	enum told kind = TOLD_TIME;

	while (kind < TOLD_KINDS && (!door->told_keys[kind] || label->key != door->told_keys[kind]))
		kind++;
	return kind;
}

static uint64_t told_number(const struct door *door, const struct pprof_label *label)
{
	uint64_t number;

	if (!label->str)
		return (uint64_t)label->num;
	return slice_parse_u64(text_at(door, label->str), &number) ? number : 0;
}

static void put_id(uint8_t *to, uint64_t id)
{
	id = htobe64(id);
	memcpy(to, &id, sizeof(id));
}

/* Datadog has no trace id there: the root of the spans in this process stands in for it. */
static void add_told(const struct door *door, const struct pprof_sample *sample, uint32_t row)
{
	uint64_t told[TOLD_KINDS] = { 0 }, start_ns = (uint64_t)door->start_ns;
	struct trace_link link = { { 0 }, { 0 } };
	uint32_t tick = UINT32_MAX;
	bool linked;

	for (uint32_t i = 0; i < sample->label_count; i++) {
		const struct pprof_label *label = &door->p->labels.data[sample->label_first + i];
		enum told kind = told_kind(door, label);

		if (kind < TOLD_KINDS)
			told[kind] = told_number(door, label);
	}
	if (told[TOLD_TIME] >= start_ns && (told[TOLD_TIME] - start_ns) / TABLES_TICK_NS < tick)
		tick = (uint32_t)((told[TOLD_TIME] - start_ns) / TABLES_TICK_NS);
	linked = told[TOLD_SPAN] || told[TOLD_ROOT];
	put_id(link.trace_id + sizeof(link.trace_id) - sizeof(uint64_t), told[TOLD_ROOT]);
	put_id(link.span_id, told[TOLD_SPAN]);
	if (linked || tick != UINT32_MAX)
		normalise_moment(door->n, row, tick, linked ? &link : NULL);
}

static uint32_t labels_of(const struct door *door, const struct pprof_sample *sample)
{
	normalise_labels_begin(door->n);
	for (uint32_t i = 0; i < sample->label_count; i++) {
		const struct pprof_label *source = &door->p->labels.data[sample->label_first + i];
		struct label label;

		if (door->input->datadog_labels && told_kind(door, source) != TOLD_KINDS)
			continue;
		label = (struct label){ .name = string_at(door, source->key) };
		if (source->str) {
			label.value = string_at(door, source->str);
		} else if (source->num || source->num_unit) {
			label.numeric = 1;
			label.number = source->num;
			label.unit = string_at(door, source->num_unit);
		} else {
			continue; /* means nothing, by the format's rule */
		}
		normalise_sample_label(door->n, &label);
	}
	return normalise_sample_labels_end(door->n);
}

static int add_samples(struct door *door)
{
	int64_t counted[TABLES_COLUMNS_PER_GROUP_MAX], chosen[TABLES_COLUMNS_PER_GROUP_MAX];
	uint32_t columns = (uint32_t)door->p->sample_types.count;

	normalise_rows_begin(door->n, door->types_count);
	for (size_t i = 0; i < door->p->samples.count && !door->n->problem; i++) {
		const struct pprof_sample *sample = &door->p->samples.data[i];
		const int64_t *values = door->p->values.data + sample->value_first;
		uint32_t row;

		if (sample->value_count != columns)
			return err_set(door->err, ERR_INVALID,
				       "take pprof: sample %zu has %u values, but the profile has "
				       "%u sample types",
				       i, sample->value_count, columns);
		for (uint32_t c = 0; c < door->types_count; c++)
			chosen[c] = values[door->types[c]];
		if (!normalise_values(chosen, door->types_count, counted))
			continue;
		row = normalise_row(door->n, stack_of(door, sample), labels_of(door, sample),
				    counted);
		if (door->input->datadog_labels && door->limits->moments_max)
			add_told(door, sample, row);
	}
	return normaliser_check(door->n, door->err);
}

static struct slice name_of(const struct door *door)
{
	struct slice name = door->input->name;

	for (size_t i = 0; i < door->input->labels_count && !door->input->name.len; i++)
		if (slice_is(door->input->labels[i].name, "__name__"))
			name = door->input->labels[i].value;
	return name.len ? name : ingest_default_name(door->p, name);
}

/* What the request says of a sample type; nothing, if it does not. */
static struct ingest_type told_of(const struct door *door, struct slice type)
{
	const struct ingest_pprof *input = door->input;

	for (size_t i = 0; i < input->types_count; i++)
		if (slice_equal(input->types[i].type, type))
			return input->types[i];
	return (struct ingest_type){ .type = type };
}

static bool is_state(struct slice type)
{
	return slice_starts_with(type, SLICE_LITERAL("inuse_")) || slice_is(type, "live") ||
	       slice_is(type, "goroutine") || slice_is(type, "goroutines") ||
	       /* Datadog's */
	       slice_starts_with(type, SLICE_LITERAL("inuse-")) ||
	       slice_starts_with(type, SLICE_LITERAL("heap-"));
}

static enum column_kind kind_of(const struct door *door, struct slice type, int64_t duration_ns)
{
	struct ingest_type told = told_of(door, type);

	if (told.cumulative)
		return COLUMN_CUMULATIVE;
	if (told.average || (door->input->deltas && is_state(type)))
		return COLUMN_GAUGE;
	return door->input->deltas ? COLUMN_DELTA : normalise_kind(type, duration_ns);
}

static int check_types(const struct door *door)
{
	const struct pprof *p = door->p;

	if (!p->sample_types.count)
		return err_set(door->err, ERR_INVALID,
			       "take pprof: the profile has no sample types");
	if (p->sample_types.count > TABLES_COLUMNS_PER_GROUP_MAX)
		return err_set(
			door->err, ERR_LIMIT,
			"take pprof: the profile has %zu sample types, at most %u can be kept",
			p->sample_types.count, TABLES_COLUMNS_PER_GROUP_MAX);
	for (size_t i = 0; i < p->sample_types.count; i++)
		if (!text_at(door, p->sample_types.data[i].type).len)
			return err_set(door->err, ERR_INVALID,
				       "take pprof: sample type %zu has no name", i);
	return 0;
}

static bool is_kept(const struct door *door, const struct pprof_value_type *type)
{
	const struct ingest_pprof *input = door->input;

	for (size_t i = 0; i < input->kept_count; i++)
		if (slice_equal(input->kept[i].type, text_at(door, type->type)) &&
		    slice_equal(input->kept[i].unit, text_at(door, type->unit)))
			return true;
	return !input->kept;
}

/* Those that are not wanted are as good as taken. */
static int leave_out(const struct door *door, bool *taken)
{
	const struct pprof *p = door->p;
	size_t left = 0;

	for (size_t i = 0; i < p->sample_types.count; i++) {
		taken[i] = !is_kept(door, &p->sample_types.data[i]);
		left += taken[i];
	}
	if (left == p->sample_types.count)
		return err_set(door->err, ERR_INVALID,
			       "take pprof: the profile has none of the sample types that are to "
			       "be kept; its first is %.*s in %.*s",
			       SLICE_FMT(text_at(door, p->sample_types.data[0].type)),
			       SLICE_FMT(text_at(door, p->sample_types.data[0].unit)));
	return 0;
}

/* The next report's share of the sample types: those of one name. False: all are taken. */
static bool next_types(struct door *door, bool *taken)
{
	door->types_count = 0;
	for (uint32_t i = 0; i < door->p->sample_types.count; i++) {
		struct slice type = text_at(door, door->p->sample_types.data[i].type), name;

		if (taken[i])
			continue;
		name = door->input->named_by_type
			       ? ingest_type_name(door->p, i, told_of(door, type).name)
			       : name_of(door);
		if (!door->types_count)
			door->name = name;
		else if (!slice_equal(door->name, name))
			continue;
		taken[i] = true;
		door->types[door->types_count++] = i;
	}
	return door->types_count;
}

static uint32_t group_of(const struct door *door, int64_t duration_ns)
{
	struct column columns[TABLES_COLUMNS_PER_GROUP_MAX];
	const struct pprof *p = door->p;
	struct group group = { .column_count = door->types_count, .period = p->period };

	for (uint32_t i = 0; i < group.column_count; i++) {
		const struct pprof_value_type *type = &p->sample_types.data[door->types[i]];
		struct slice name = text_at(door, type->type);

		columns[i].sample_type = normalise_type_text(door->n, name);
		columns[i].sample_unit = normalise_type_text(door->n, text_at(door, type->unit));
		columns[i].kind = kind_of(door, name, duration_ns);
	}
	group.name = normalise_type_text(door->n, door->name);
	group.period_type = normalise_type_text(door->n, text_at(door, p->period_type.type));
	group.period_unit = normalise_type_text(door->n, text_at(door, p->period_type.unit));
	return tables_group(door->n->into, &group, columns);
}

static int series_of(const struct door *door, uint32_t group, uint32_t *ret)
{
	uint32_t label_set;
	int status;

	normalise_labels_begin(door->n);
	for (size_t i = 0; i < door->input->labels_count; i++) {
		const struct ingest_label *label = &door->input->labels[i];

		if (!slice_is(label->name, "__name__"))
			normalise_label(door->n, label->name, label->value, 0);
	}
	status = normalise_labels_end(door->n, &label_set, door->err);
	if (!status)
		*ret = tables_series(door->n->into, label_set, group);
	return status;
}

/* The same profile sent again for the same series is the same report, however it is compressed. */
static uint64_t batch_id_of(const struct ingest_pprof *input, struct slice unpacked)
{
	uint64_t hash = hash_stable(unpacked.data, unpacked.len, 0);

	hash = hash_stable(input->name.data, input->name.len, hash);
	for (size_t i = 0; i < input->labels_count; i++) {
		hash = hash_stable(input->labels[i].name.data, input->labels[i].name.len, hash);
		hash = hash_stable(input->labels[i].value.data, input->labels[i].value.len, hash);
	}
	return hash;
}

/* Pays for the maps beforehand, also where they will not be needed. */
static int index_all(const struct door *door)
{
	struct ingest_scratch *scratch = door->scratch;
	const struct pprof *p = door->p;
	size_t bytes =
		(p->mappings.count + p->locations.count + p->functions.count) * NORMALISE_MAP_BYTES;

	if (bytes > scratch->index_bytes) {
		if (!budget_take(scratch->budget, bytes - scratch->index_bytes))
			return budget_fail(scratch->budget, bytes - scratch->index_bytes,
					   "take pprof", door->err);
		scratch->index_bytes = bytes;
	}
	index_ids(&scratch->mapping_index, p->mappings.data, p->mappings.count,
		  sizeof(*p->mappings.data));
	index_ids(&scratch->location_index, p->locations.data, p->locations.count,
		  sizeof(*p->locations.data));
	index_ids(&scratch->function_index, p->functions.data, p->functions.count,
		  sizeof(*p->functions.data));
	return 0;
}

/* Tables indexed by the request's own ids, none of them looked at yet. */
static int prepare(const struct door *door)
{
	struct ingest_scratch *scratch = door->scratch;
	const struct pprof *p = door->p;

	scratch->string_ids.count = scratch->chains.count = scratch->chain_frames.count = 0;
	scratch->mapping_frames.count = 0;
	normalise_places(door->n, p->locations.count, p->location_ids.count);
	if (!COLUMN_ROOM_PAID(&scratch->string_ids, scratch->budget, p->strings.count + 1,
			      UINT32_MAX) ||
	    !COLUMN_ROOM_PAID(&scratch->mapping_frames, scratch->budget, p->mappings.count + 1,
			      UINT32_MAX) ||
	    !COLUMN_ROOM_PAID(&scratch->chains, scratch->budget, p->locations.count + 1,
			      UINT32_MAX))
		return budget_fail(scratch->budget,
				   p->strings.count * sizeof(uint32_t) +
					   p->mappings.count * sizeof(struct mapping_frame) +
					   p->locations.count * sizeof(struct chain),
				   "take pprof", door->err);
	memset(scratch->mapping_frames.data, 0,
	       (p->mappings.count + 1) * sizeof(struct mapping_frame));
	if (p->strings.count)
		memset(scratch->string_ids.data, 0xff, p->strings.count * sizeof(uint32_t));
	if (p->locations.count)
		memset(scratch->chains.data, 0xff, p->locations.count * sizeof(struct chain));
	return index_all(door);
}

/* Room for so much of gzip's output, paid for. */
static bool pay_inflated(struct ingest_scratch *scratch, size_t bytes)
{
	size_t more = bytes > scratch->inflated_bytes ? bytes - scratch->inflated_bytes : 0;

	if (!budget_take(scratch->budget, more))
		return false;
	scratch->inflated_bytes += more;
	return true;
}

/* Gunzips a little at a time: what a few bytes become nobody knows before. */
static int inflate(const struct door *door)
{
	struct ingest_scratch *scratch = door->scratch;
	struct slice bytes = door->input->bytes;
	size_t most = door->limits->decompressed_bytes_max;
	size_t room = bytes.len * INFLATE_FIRST_FACTOR + INFLATE_FIRST_BYTES;
	int status;

	for (;; room *= INFLATE_NEXT_FACTOR) {
		if (room > most)
			room = most;
		if (!pay_inflated(scratch, room))
			return budget_fail(scratch->budget, room - scratch->inflated_bytes,
					   "take pprof", door->err);
		strbuf_clear(&scratch->inflated);
		if (door->err)
			door->err->code = ERR_NONE; /* of the attempt before */
		status = compress_gunzip_with(scratch->gunzip, bytes, room, &scratch->inflated,
					      door->err);
		if (status != -ERR_LIMIT || room == most)
			return status;
	}
}

static int decode(const struct door *door, struct slice *ret_unpacked)
{
	struct ingest_scratch *scratch = door->scratch;
	struct slice bytes = door->input->bytes;
	int status;

	if (compress_is_gzip(bytes)) {
		status = inflate(door);
		if (status)
			return status;
		bytes = strbuf_slice(&scratch->inflated);
	}
	if (bytes.len > door->limits->decompressed_bytes_max)
		return err_set(door->err, ERR_LIMIT, "take pprof: %zu bytes, more than %zu",
			       bytes.len, door->limits->decompressed_bytes_max);
	if (!bytes.len)
		return err_set(door->err, ERR_INVALID, "take pprof: the profile is empty");
	scratch->pprof.samples_max = door->limits->samples_max;
	*ret_unpacked = bytes;
	return pprof_decode(bytes, door->limits->samples_max * ELEMENTS_PER_SAMPLE, &scratch->pprof,
			    door->err);
}

/* The profile's own times; where it has none, the request's. */
static void times_of(const struct door *door, int64_t *ret_start_ns, int64_t *ret_duration_ns)
{
	const struct ingest_pprof *input = door->input;
	int64_t start_ns = door->p->time_nanos ? door->p->time_nanos : input->from_ns;

	*ret_start_ns = normalise_time(door->n, start_ns);
	*ret_duration_ns = normalise_duration(door->p->duration_nanos);
	if (!*ret_duration_ns && input->until_ns > input->from_ns)
		*ret_duration_ns = normalise_duration(input->until_ns - input->from_ns);
}

static int add_report(struct door *door, int64_t start_ns, int64_t duration_ns, uint64_t batch_id)
{
	uint32_t group = group_of(door, duration_ns), series = TABLES_FULL;
	int status = series_of(door, group, &series);

	if (!status)
		status = add_samples(door);
	if (status)
		return status;
	return normalise_rows_end(door->n, series, start_ns, duration_ns, batch_id, door->err);
}

static int take(struct door *door)
{
	bool taken[TABLES_COLUMNS_PER_GROUP_MAX] = { false };
	struct slice unpacked = { 0 };
	int64_t start_ns, duration_ns;
	uint64_t batch_id;
	int status = decode(door, &unpacked);

	if (!status)
		status = prepare(door);
	if (!status)
		status = check_types(door);
	if (!status)
		status = leave_out(door, taken);
	if (status)
		return status;
	find_told_keys(door);
	times_of(door, &start_ns, &duration_ns);
	door->start_ns = start_ns;
	batch_id = batch_id_of(door->input, unpacked);
	while (!status && next_types(door, taken))
		status = add_report(door, start_ns, duration_ns, batch_id);
	return status;
}

int ingest_from_pprof(struct ingest_scratch *scratch, const struct ingest_limits *limits,
		      const struct ingest_pprof *profile, struct tables *into, struct err *err)
{
	struct door door = { .scratch = scratch,
			     .n = &scratch->normaliser,
			     .p = &scratch->pprof,
			     .limits = limits,
			     .input = profile,
			     .err = err };
	struct err own_err = { 0 };
	int status;

	if (!err)
		door.err = &own_err;
	repairs_count_request(DOOR_PPROF, profile->bytes.len);
	normaliser_begin(&scratch->normaliser, limits, into, profile->now_ns);
	status = take(&door);
	if (status)
		repairs_count_refused(door.err->code);
	else
		repairs_count_taken(1, scratch->normaliser.rows.count);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ingest/normalise.h"

#include <assert.h>

#include "base/hash.h"
#include "base/mem.h"
#include "codec/wire/utf8.h"

#define FRAMES_PER_SAMPLE 16	/* of the budget of trie steps, on the average over samples_max */
#define NAMED_PER_PLACE 3	/* by stacks, where a dictionary leaves nothing out */
#define SIBLINGS_MAX 16		/* in lists; further children are looked up in the tables' map */
#define ROW_MAP_SLOTS_KEPT 4096 /* a larger map that is mostly empty is freed, not cleared */
#define ROW_BYTES ((size_t)64 << 10) /* what a sample may add, as a rule: paid beforehand */
#define PAID_AHEAD_BYTES ((size_t)1 << 20)
#define TIME_MIN_NS (946684800ll * CLOCK_NS_PER_S) /* 2000-01-01: nothing profiled is older */
#define TIME_AHEAD_NS (24 * 3600 * CLOCK_NS_PER_S) /* clocks may be this wrong */
#define DURATION_MAX_NS (10 * 365 * 24 * 3600 * CLOCK_NS_PER_S)

static const char problem_full[] = "the batch is full";
static const char problem_memory[] = "it takes too much memory";
static const char problem_frames[] = "the stacks have too many frames in all";

void normaliser_init(struct normaliser *n, struct budget *budget)
{
	*n = (struct normaliser){ .budget = budget };
}

void normaliser_free(struct normaliser *n)
{
	normaliser_forget(n);
	strbuf_free(&n->text);
	free(n->stack);
	free(n->path_frames);
	free(n->path_nodes);
	COLUMN_FREE(&n->links, n->budget);
	COLUMN_FREE(&n->rows, n->budget);
	COLUMN_FREE(&n->values, n->budget);
	COLUMN_FREE(&n->moments, n->budget);
	idmap_free(&n->row_map);
	normaliser_init(n, n->budget);
}

/* The lists of children go on where the tables are as the request before left them. */
static void begin_links(struct normaliser *n, const struct tables *into)
{
	bool known = n->into == into && n->links.count == into->nodes.count;

	if (into->nodes.count > 1 && known)
		return;
	n->links.count = 0;
	if (into->nodes.count == 1 && COLUMN_ROOM_PAID(&n->links, n->budget, 1, TABLES_NODES_MAX))
		n->links.data[n->links.count++] = (struct normalise_links){ 0 };
}

void normaliser_begin(struct normaliser *n, const struct ingest_limits *limits, struct tables *into,
		      int64_t now_ns)
{
	size_t deep = limits->stack_depth_max + 1; /* the marker comes on top */

	begin_links(n, into);
	n->limits = limits;
	n->into = into;
	n->now_ns = now_ns;
	n->problem = NULL;
	n->places_differ = false;
	n->frames_left = limits->samples_max * FRAMES_PER_SAMPLE;
	if (n->stack_capacity < deep) {
		n->stack = mem_realloc(n->stack, deep, sizeof(*n->stack));
		n->path_frames = mem_realloc(n->path_frames, deep, sizeof(*n->path_frames));
		n->path_nodes = mem_realloc(n->path_nodes, deep, sizeof(*n->path_nodes));
		n->stack_capacity = deep;
	}
	n->stack_count = 0;
	n->path_count = 0;
}

void normalise_places(struct normaliser *n, size_t places, size_t named)
{
	n->places_differ = named / NAMED_PER_PLACE >= places;
}

int normaliser_check(const struct normaliser *n, struct err *err)
{
	if (!n->problem)
		return 0;
	if (n->problem == problem_memory)
		return budget_fail(n->budget, n->wanted_bytes, "take profile", err);
	return err_set(err, ERR_LIMIT, "take profile: %s; send smaller requests", n->problem);
}

/* What a batch takes, with the maps over it. */
static size_t bytes_of(const struct tables *t)
{
	size_t maps = t->strings.count + t->label_sets.count + t->frames.count + t->nodes.count +
		      t->series.count + t->links.count;

	return t->string_bytes.count + t->strings.count * sizeof(struct string_ref) +
	       t->labels.count * sizeof(struct label) +
	       t->label_sets.count * sizeof(struct label_set) +
	       t->frames.count * sizeof(struct frame) + t->nodes.count * sizeof(struct node) +
	       t->series.count * sizeof(struct series) + t->reports.count * sizeof(struct report) +
	       t->rows.count * sizeof(struct row) +
	       (t->values.count + t->totals.count) * sizeof(int64_t) +
	       t->moments.count * sizeof(struct moment) +
	       t->links.count * sizeof(struct trace_link) + maps * NORMALISE_MAP_BYTES;
}

/* True if what the batch holds is paid for, and `more` bytes that come next. */
static bool is_affordable(struct normaliser *n, size_t more)
{
	size_t needed = bytes_of(n->into) + more;

	if (!n->budget || needed <= n->batch_bytes)
		return true;
	n->wanted_bytes = needed - n->batch_bytes;
	if (budget_take(n->budget, n->wanted_bytes + PAID_AHEAD_BYTES))
		n->wanted_bytes += PAID_AHEAD_BYTES;
	else if (!budget_take(n->budget, n->wanted_bytes)) {
		n->problem = n->problem ? n->problem : problem_memory;
		return false;
	}
	n->batch_bytes += n->wanted_bytes;
	return true;
}

void normaliser_forget(struct normaliser *n)
{
	budget_give(n->budget, n->batch_bytes);
	n->batch_bytes = 0;
}

/* An id that tables gave, or 0 when they are full. */
static uint32_t checked(struct normaliser *n, uint32_t id)
{
	if (id != TABLES_FULL)
		return id;
	n->problem = problem_full;
	return 0;
}

static struct slice repaired_utf8(struct normaliser *n, struct slice text)
{
	strbuf_clear(&n->text);
	while (text.len)
		text = slice_tail(text, utf8_add_repaired(&n->text, text));
	repairs_count(REPAIR_UTF8, 1);
	return strbuf_slice(&n->text);
}

/* Valid until the next call. */
static struct slice repaired_text(struct normaliser *n, struct slice text)
{
	size_t bytes_max = n->limits->string_bytes_max;

	if (text.len > bytes_max) {
		text = utf8_cut(text, bytes_max);
		repairs_count(REPAIR_LONG_STRING, 1);
	}
	return slice_is_utf8(text) ? text : repaired_utf8(n, text);
}

uint32_t normalise_text(struct normaliser *n, struct slice text)
{
	return checked(n, tables_string(n->into, repaired_text(n, text)));
}

uint32_t normalise_type_text(struct normaliser *n, struct slice text)
{
	bool changed = false;

	text = repaired_text(n, text);
	if (text.data != n->text.data) {
		strbuf_clear(&n->text);
		strbuf_add_slice(&n->text, text);
	}
	for (size_t i = 0; i < n->text.len; i++) {
		unsigned char byte = (unsigned char)n->text.data[i];

		if (byte == ':' || byte == '{' || byte == '}' || byte <= ' ' || byte == 0x7f) {
			n->text.data[i] = '_';
			changed = true;
		}
	}
	if (changed)
		repairs_count(REPAIR_TYPE_TEXT, 1);
	return checked(n, tables_string(n->into, strbuf_slice(&n->text)));
}

void normalise_labels_begin(struct normaliser *n)
{
	n->labels_count = 0;
	n->labels_overflow = false;
}

void normalise_label(struct normaliser *n, struct slice name, struct slice value, uint8_t level)
{
	struct label label = { 0 };

	if (!name.len) {
		repairs_count(REPAIR_LABEL_EMPTY, 1);
		return;
	}
	if (slice_starts_with(name, SLICE_LITERAL("__"))) {
		repairs_count(REPAIR_LABEL_RESERVED, 1);
		return;
	}
	label.name = normalise_text(n, name);
	label.value = normalise_text(n, value);
	for (uint32_t i = 0; i < n->labels_count; i++) {
		if (n->labels[i].name != label.name)
			continue;
		if (n->label_levels[i] == level)
			repairs_count(REPAIR_LABEL_DUPLICATE, 1);
		n->labels[i] = label;
		n->label_levels[i] = level;
		return;
	}
	if (n->labels_count >= n->limits->labels_max ||
	    n->labels_count >= TABLES_LABELS_PER_SET_MAX) {
		n->labels_overflow = true;
		return;
	}
	n->label_levels[n->labels_count] = level;
	n->labels[n->labels_count++] = label;
}

/* An empty value means that the label is not there. */
static uint32_t without_empty(struct label *labels, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++)
		if (labels[i].value)
			labels[kept++] = labels[i];
	return kept;
}

/* Before the tenant's own label is added. */
static int check_guard(const struct normaliser *n, struct err *err)
{
	struct label_guard_pair pairs[TABLES_LABELS_PER_SET_MAX];
	struct tables_view view;

	if (!n->limits->guard || n->problem)
		return 0;
	view = tables_view_of(n->into);
	for (uint32_t i = 0; i < n->labels_count; i++)
		pairs[i] = (struct label_guard_pair){ tables_text(&view, n->labels[i].name),
						      tables_text(&view, n->labels[i].value) };
	return label_guard_check(n->limits->guard, n->tenant, pairs, n->labels_count,
				 clock_monotonic_ns(), err);
}

/* The same for all orders of the labels. */
static uint64_t hash_of_labels(const struct normaliser *n)
{
	struct tables_view view = tables_view_of(n->into);
	uint64_t hash = 0;

	for (uint32_t i = 0; i < n->labels_count; i++) {
		struct slice name = tables_text(&view, n->labels[i].name),
			     value = tables_text(&view, n->labels[i].value);

		hash += hash_pair(hash_bytes(name.data, name.len),
				  hash_bytes(value.data, value.len));
	}
	return hash;
}

static int check_admission(const struct normaliser *n, struct err *err)
{
	const struct ingest_limits *limits = n->limits;

	return limits->admit_series && !n->problem
		       ? limits->admit_series(limits->admit_context, hash_of_labels(n),
					      (uint32_t)n->labels_count, err)
		       : 0;
}

int normalise_labels_end(struct normaliser *n, uint32_t *ret, struct err *err)
{
	int rc;

	if (n->labels_overflow)
		return err_set(err, ERR_LIMIT, "take profile: its series has more than %zu labels",
			       n->limits->labels_max);
	n->labels_count = without_empty(n->labels, n->labels_count);
	if (n->tenant.len && n->labels_count == TABLES_LABELS_PER_SET_MAX)
		return err_set(err, ERR_LIMIT,
			       "take profile: with its tenant, its series has more than %u labels",
			       TABLES_LABELS_PER_SET_MAX);
	rc = check_guard(n, err);
	if (!rc)
		rc = check_admission(n, err);
	if (rc)
		return rc;
	if (n->tenant.len)
		n->labels[n->labels_count++] = (struct label){
			.name = checked(n,
					tables_string(n->into, SLICE_LITERAL(INGEST_TENANT_LABEL))),
			.value = checked(n, tables_string(n->into, n->tenant))
		};
	*ret = checked(n, tables_label_set(n->into, n->labels, n->labels_count));
	return 0;
}

void normalise_sample_label(struct normaliser *n, const struct label *label)
{
	if (!label->name)
		repairs_count(REPAIR_LABEL_EMPTY, 1);
	else if (n->labels_count == TABLES_LABELS_PER_SET_MAX)
		repairs_count(REPAIR_LABELS_MANY, 1);
	else
		n->labels[n->labels_count++] = *label;
}

uint32_t normalise_sample_labels_end(struct normaliser *n)
{
	if (!n->labels_count)
		return 0;
	return checked(n, tables_label_set(n->into, n->labels, n->labels_count));
}

static void mark_cut(struct normaliser *n)
{
	struct frame marker = { .kind = FRAME_MARKER };

	marker.function = normalise_text(n, SLICE_LITERAL("[truncated: too deep]"));
	n->stack[n->stack_count++] = checked(n, tables_frame(n->into, &marker));
	repairs_count(REPAIR_DEEP_STACK, 1);
}

/* A node that is surely not there yet. */
static uint32_t new_child(struct normaliser *n, uint32_t parent, uint32_t frame)
{
	struct normalise_links *links;
	uint32_t id;

	if (!n->links.count)
		return checked(n, tables_new_node(n->into, parent, frame));
	if (!COLUMN_ROOM_PAID(&n->links, n->budget, 1, TABLES_NODES_MAX))
		return checked(n, TABLES_FULL);
	id = checked(n, tables_add_node(n->into, parent, frame));
	links = n->links.data;
	if (!id)
		return 0;
	links[id] = (struct normalise_links){ 0, links[parent].first_child };
	links[parent].first_child = id;
	n->links.count++;
	return id;
}

/* The path's nodes from `at` on, all of them new: they follow each other in the tables. */
static uint32_t new_path(struct normaliser *n, uint32_t parent, size_t at, size_t depth)
{
	uint32_t count = (uint32_t)(depth - at), first;
	struct normalise_links *links;

	if (!COLUMN_ROOM_PAID(&n->links, n->budget, count, TABLES_NODES_MAX))
		return checked(n, TABLES_FULL);
	first = tables_add_path(n->into, parent, n->path_frames + at, count);
	if (checked(n, first) != first)
		return 0;
	links = n->links.data;
	for (uint32_t i = 0; i < count; i++) {
		n->path_nodes[at + i] = first + i;
		links[first + i] = (struct normalise_links){ first + i + 1, 0 };
	}
	links[first + count - 1].first_child = 0;
	links[first].next_sibling = links[parent].first_child;
	links[parent].first_child = first;
	n->links.count += count;
	return first + count - 1;
}

/* One of more children than a list is good for: the tables' map has it, or gets it. */
static uint32_t mapped_child(struct normaliser *n, uint32_t parent, uint32_t frame)
{
	uint32_t id;

	if (n->links.count && !COLUMN_ROOM_PAID(&n->links, n->budget, 1, TABLES_NODES_MAX))
		return checked(n, TABLES_FULL);
	id = checked(n, tables_node(n->into, parent, frame));
	if (n->links.count && id == n->links.count)
		n->links.data[n->links.count++] = (struct normalise_links){ 0 };
	return id;
}

/*
 * Most nodes have few children: finding one in a list, most of which lies in the cache, takes less
 * than to keep a map of all nodes that nobody asks afterwards.
 */
static uint32_t child_of(struct normaliser *n, uint32_t parent, uint32_t frame)
{
	const struct node *nodes = n->into->nodes.data;
	uint32_t steps = 0;

	if (!n->links.count)
		return mapped_child(n, parent, frame);
	for (uint32_t at = n->links.data[parent].first_child; at;
	     at = n->links.data[at].next_sibling) {
		if (nodes[at].parent == parent && nodes[at].frame == frame)
			return at;
		if (++steps == SIBLINGS_MAX)
			return mapped_child(n, parent, frame);
	}
	return new_child(n, parent, frame);
}

/*
 * Stacks that follow each other mostly share their root side, so the walk down the trie starts
 * where this stack leaves the one before it. Where the first node is new, all below it are.
 */
uint32_t normalise_stack_end(struct normaliser *n)
{
	size_t shared = n->stack_shared, first_new, depth;
	uint32_t node = 0;

	if (n->stack_cut)
		mark_cut(n);
	depth = n->stack_shared + n->stack_count;
	while (shared < n->path_count && shared < depth &&
	       n->path_frames[shared] == n->stack[depth - 1 - shared])
		shared++;
	if (depth - shared > n->frames_left) {
		n->problem = problem_frames;
		return 0;
	}
	n->frames_left -= depth - shared;
	if (shared)
		node = n->path_nodes[shared - 1];
	for (size_t i = shared; i < depth; i++)
		n->path_frames[i] = n->stack[depth - 1 - i];
	first_new = n->into->nodes.count;
	for (; shared < depth && (node < first_new || !n->links.count); shared++) {
		node = node < first_new ? child_of(n, node, n->path_frames[shared])
					: new_child(n, node, n->path_frames[shared]);
		n->path_nodes[shared] = node;
	}
	if (shared < depth)
		node = new_path(n, node, shared, depth);
	n->path_count = depth;
	return node;
}

/* Clearing a map costs its size: a map left over from a huge report is not kept for small ones. */
static void clear_row_map(struct normaliser *n)
{
	struct idmap *map = &n->row_map;

	if (map->slots && map->mask >= ROW_MAP_SLOTS_KEPT && map->count < map->mask / 16)
		idmap_free(map);
	else
		idmap_clear(map);
}

void normalise_rows_begin(struct normaliser *n, uint32_t columns)
{
	assert(columns >= 1 && columns <= TABLES_COLUMNS_PER_GROUP_MAX);
	n->columns = columns;
	n->rows.count = 0;
	n->values.count = 0;
	n->moments.count = 0;
	clear_row_map(n);
	is_affordable(n, 0);
}

bool normalise_values(const int64_t *values, uint32_t columns, int64_t *ret)
{
	bool any = false, kept = false;

	for (uint32_t i = 0; i < columns; i++) {
		any |= values[i] != 0;
		kept |= values[i] > 0;
		if (values[i] < 0)
			repairs_count(REPAIR_NEGATIVE_VALUE, 1);
		ret[i] = values[i] < 0 ? 0 : values[i];
	}
	if (!any)
		repairs_count(REPAIR_ZERO_SAMPLE, 1);
	return kept;
}

static bool row_equal(const void *context, uint32_t id, const void *key)
{
	const struct normaliser *n = context;
	const struct row *row = key;

	return n->rows.data[id].stack == row->stack && n->rows.data[id].label_set == row->label_set;
}

static void add_values(struct normaliser *n, uint32_t row, const int64_t *values)
{
	int64_t *sums = n->values.data + (size_t)row * n->columns;

	for (uint32_t i = 0; i < n->columns; i++) {
		if (!__builtin_add_overflow(sums[i], values[i], &sums[i]))
			continue;
		sums[i] = INT64_MAX; /* values are not negative */
		repairs_count(REPAIR_VALUE_OVERFLOW, 1);
	}
}

uint32_t normalise_row(struct normaliser *n, uint32_t stack, uint32_t label_set,
		       const int64_t *values)
{
	struct row row = { stack, label_set };
	uint64_t hash = hash_mix(hash_mix(0, stack), label_set);
	uint32_t id = idmap_find(&n->row_map, hash, row_equal, n, &row);

	if (id != IDMAP_NONE) {
		add_values(n, id, values);
		return id;
	}
	if (!is_affordable(n, ROW_BYTES + n->rows.count * NORMALISE_MAP_BYTES) ||
	    !COLUMN_ROOM_PAID(&n->rows, n->budget, 1, TABLES_ROWS_MAX) ||
	    !COLUMN_ROOM_PAID(&n->values, n->budget, n->columns, TABLES_VALUES_MAX)) {
		n->problem = n->problem ? n->problem : problem_full;
		return 0;
	}
	memcpy(n->values.data + n->values.count, values, n->columns * sizeof(*values));
	n->values.count += n->columns;
	id = (uint32_t)n->rows.count++;
	idmap_add(&n->row_map, hash, id);
	n->rows.data[id] = row;
	return id;
}

void normalise_moment(struct normaliser *n, uint32_t row, uint32_t tick,
		      const struct trace_link *link)
{
	struct moment moment = { row, tick, 0 };

	if (n->moments.count >= n->limits->moments_max) {
		repairs_count(REPAIR_MOMENTS_MANY, 1);
		return;
	}
	if (link)
		moment.link = checked(n, tables_link(n->into, link));
	if (COLUMN_ROOM_PAID(&n->moments, n->budget, 1, TABLES_MOMENTS_MAX))
		n->moments.data[n->moments.count++] = moment;
	else
		n->problem = problem_full;
}

static bool add_moments(struct normaliser *n)
{
	if (!n->moments.count)
		return true;
	tables_order_moments(n->moments.data, n->moments.count);
	return tables_moments(n->into, n->moments.data, (uint32_t)n->moments.count);
}

int normalise_rows_end(struct normaliser *n, uint32_t series, int64_t start_ns, int64_t duration_ns,
		       uint64_t batch_id, struct err *err)
{
	if (!n->problem)
		checked(n, tables_report_begin(n->into, series, start_ns, duration_ns, batch_id));
	if (!is_affordable(n, n->rows.count * sizeof(*n->rows.data) +
				      n->values.count * sizeof(*n->values.data) +
				      n->moments.count * sizeof(*n->moments.data)))
		tables_report_cancel(n->into);
	if (n->problem)
		return normaliser_check(n, err);
	if (tables_rows(n->into, n->rows.data, (uint32_t)n->rows.count, n->values.data) &&
	    add_moments(n))
		return 0;
	tables_report_cancel(n->into);
	n->problem = problem_full;
	return normaliser_check(n, err);
}

/* Some senders give microseconds or milliseconds where nanoseconds belong: 1970 by our reading. */
int64_t normalise_time(struct normaliser *n, int64_t time_ns)
{
	static const int64_t units[] = { CLOCK_NS_PER_US, CLOCK_NS_PER_MS, CLOCK_NS_PER_S };

	if (time_ns <= 0) {
		repairs_count(REPAIR_TIME_MISSING, 1);
		return n->now_ns;
	}
	if (time_ns >= TIME_MIN_NS)
		return time_ns;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		int64_t fixed;

		if (__builtin_mul_overflow(time_ns, units[i], &fixed) || fixed < TIME_MIN_NS ||
		    fixed > n->now_ns + TIME_AHEAD_NS)
			continue;
		repairs_count(REPAIR_TIME_UNIT, 1);
		return fixed;
	}
	return time_ns;
}

int64_t normalise_duration(int64_t duration_ns)
{
	if (duration_ns >= 0 && duration_ns <= DURATION_MAX_NS)
		return duration_ns;
	repairs_count(REPAIR_DURATION, 1);
	return 0;
}

enum column_kind normalise_kind(struct slice sample_type, int64_t duration_ns)
{
	if (duration_ns)
		return COLUMN_DELTA;
	if (slice_starts_with(sample_type, SLICE_LITERAL("alloc_")) ||
	    slice_is(sample_type, "contentions") || slice_is(sample_type, "delay"))
		return COLUMN_CUMULATIVE;
	return COLUMN_GAUGE;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "bench/requests.h"
#include "server/ingest/ingest.h"

#define SEED 0x9e3779b97f4a7c15ull
#define FRAMES 20000
#define NODES_PER_STACK_MAX 5
#define CALL_NEW 0.25 /* see next_callee */
#define CALL_GROWTH 0.15
#define NEW_FRAME 0.75
#define DEPTH_MAX 120
#define HOST_STACKS 400
#define HOST_FRAMES 1500
#define HOST_MEAN_ALL 190 /* samples per report of the whole host: one CPU at 19 Hz */

/* Stacks of one kind of program: a tree, which of its nodes are stacks, and how frequent each is.
 */
struct law {
	struct law_node {
		uint32_t parent; /* smaller; UINT32_MAX at the root */
		uint32_t frame, depth;
	} * nodes;
	uint32_t *by_rank;
	double *cumulative, *probability;
	uint32_t nodes_count, nodes_max;
	uint32_t stacks;
	uint64_t random;
	uint32_t frames, frames_used;
	struct law_caller {
		uint32_t *drawn; /* frames of the children of nodes with this frame */
		uint32_t drawn_count, drawn_capacity;
		uint32_t different;
	} * callers;	       /* by frame; the last is for the root */
	struct idmap children; /* nodes by (parent, frame) */
};

static bool law_child_equal(const void *context, uint32_t id, const void *key)
{
	const struct law_node *node = &((const struct law *)context)->nodes[id];
	const struct node *wanted = key;

	return node->parent == wanted->parent && node->frame == wanted->frame;
}

static uint64_t next_random(struct law *law)
{
	uint64_t x = law->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return law->random = x;
}

static double next_unit(struct law *law)
{
	return (double)(next_random(law) >> 11) * 0x1p-53;
}

/* Knuth's, in pieces, so that exp() does not vanish. */
static uint32_t next_poisson(struct law *law, double mean)
{
	uint32_t count = 0;

	while (mean > 0) {
		double piece = mean > 200 ? 200 : mean, limit = exp(-piece), at = next_unit(law);

		for (; at > limit; at *= next_unit(law))
			count++;
		mean -= piece;
	}
	return count;
}

static uint32_t next_geometric(struct law *law, double mean)
{
	return 1 + (uint32_t)(log(1 - next_unit(law)) / log(1 - 1 / mean));
}

/*
 * What is called next. Code calls the same few functions again and again: of the n calls from a
 * frame so far, to m different ones, the next is to another with probability
 * (CALL_NEW + CALL_GROWTH * m) / (CALL_NEW + n), else as one of those n was. Another is a frame
 * never met, until there are no more, or one that is called from elsewhere.
 */
static uint32_t next_callee(struct law *law, struct law_caller *caller)
{
	double another =
		(CALL_NEW + CALL_GROWTH * caller->different) / (CALL_NEW + caller->drawn_count);

	if (next_unit(law) >= another)
		return caller->drawn[next_random(law) % caller->drawn_count];
	caller->different++;
	if (law->frames_used < law->frames && next_unit(law) < NEW_FRAME)
		return law->frames_used++;
	return (uint32_t)(next_unit(law) * next_unit(law) * law->frames_used);
}

/* One call down from a node: into a child that is there, or a new one. */
static uint32_t step_down(struct law *law, uint32_t parent)
{
	uint32_t caller_frame = parent == UINT32_MAX ? law->frames : law->nodes[parent].frame;
	struct law_caller *caller = &law->callers[caller_frame];
	struct node child = { parent, next_callee(law, caller) };
	uint64_t hash = hash_pair((uint64_t)parent << 32 | child.frame, 0);
	uint32_t id = idmap_find(&law->children, hash, law_child_equal, law, &child);

	if (id != IDMAP_NONE)
		return id;
	mem_grow(caller->drawn, caller->drawn_count, caller->drawn_capacity);
	caller->drawn[caller->drawn_count++] = child.frame;
	id = law->nodes_count++;
	law->nodes[id] =
		(struct law_node){ parent, child.frame,
				   parent == UINT32_MAX ? 1 : law->nodes[parent].depth + 1 };
	idmap_add(&law->children, hash, id);
	return id;
}

/*
 * A stack leaves a more frequent one a few frames below its top and goes on by a few frames of its
 * own: 3.5 nodes per stack, and 4 to 8 for each that is seen in one report, as in real profiles.
 */
static void grow_stacks(struct law *law, uint32_t depth)
{
	uint32_t at = UINT32_MAX;

	while (law->nodes_count < depth)
		at = step_down(law, at);
	law->by_rank[0] = at;
	for (uint32_t rank = 1; rank < law->stacks; rank++) {
		uint32_t like = (uint32_t)(next_unit(law) * next_unit(law) * rank);
		uint32_t up = next_geometric(law, 4.5), more = next_geometric(law, 3.5);
		uint32_t wanted = law->nodes_count + more;

		at = law->by_rank[like];
		if (law->nodes[at].depth > 2 * depth)
			up += depth;
		while (up-- && law->nodes[at].parent != UINT32_MAX && law->nodes[at].depth > 4)
			at = law->nodes[at].parent;
		while (law->nodes_count < wanted && law->nodes_count < law->nodes_max &&
		       law->nodes[at].depth < DEPTH_MAX)
			at = step_down(law, at);
		law->by_rank[rank] = at;
	}
}

static void forget_calls(struct law *law)
{
	for (uint32_t i = 0; i <= law->frames; i++)
		free(law->callers[i].drawn);
	free(law->callers);
	idmap_free(&law->children);
	law->callers = NULL;
}

static void make_law(struct law *law, uint32_t stacks, uint32_t frames, uint32_t depth,
		     double shift, double exponent, uint64_t seed)
{
	double sum = 0;

	*law = (struct law){ .stacks = stacks, .random = seed, .frames = frames };
	law->callers = mem_new_array(struct law_caller, (size_t)frames + 1);
	law->nodes_max = stacks * NODES_PER_STACK_MAX + depth;
	law->nodes = mem_new_array(struct law_node, law->nodes_max);
	law->by_rank = mem_new_array(uint32_t, stacks);
	law->cumulative = mem_new_array(double, stacks);
	grow_stacks(law, depth);
	forget_calls(law);
	law->probability = mem_new_array(double, law->nodes_count);
	for (uint32_t rank = 0; rank < stacks; rank++) {
		law->probability[law->by_rank[rank]] += pow(rank + shift, -exponent);
		sum += pow(rank + shift, -exponent);
		law->cumulative[rank] = sum;
	}
	for (uint32_t rank = 0; rank < stacks; rank++)
		law->cumulative[rank] /= sum;
	for (uint32_t i = 0; i < law->nodes_count; i++)
		law->probability[i] /= sum;
}

static void free_law(struct law *law)
{
	free(law->nodes);
	free(law->by_rank);
	free(law->cumulative);
	free(law->probability);
}

static uint32_t draw_stack(struct law *law)
{
	double at = next_unit(law);
	uint32_t low = 0, high = law->stacks - 1;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (law->cumulative[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return law->by_rank[low];
}

/* A program: a law whose frames lie in a binary of its own, with what the tables know of it. */
struct program {
	struct law *law;
	uint32_t number;
	uint32_t file, build_id; /* strings */
	uint32_t *nodes;	 /* by node of the law; 0 = not made yet */
};

static uint32_t numbered(struct tables *tables, const char *text, uint64_t number)
{
	char buffer[128];

	snprintf(buffer, sizeof(buffer), "%s%08llx", text, (unsigned long long)number);
	return tables_string(tables, slice_of(buffer));
}

static struct program begin_program(struct workload *workload, struct law *law, uint32_t number)
{
	return (struct program){
		.law = law,
		.number = number,
		.file = numbered(&workload->tables, "/usr/bin/service-", number),
		.build_id = numbered(&workload->tables, "0123456789abcdef0123456789abcdef",
				     number * 40503u),
		.nodes = mem_new_array(uint32_t, law->nodes_count),
	};
}

static uint32_t node_of(struct workload *workload, struct program *program, uint32_t stack)
{
	struct tables *tables = &workload->tables;
	const struct law_node *at = &program->law->nodes[stack];
	struct frame frame = {
		.kind = FRAME_NATIVE,
		.flags = FRAME_ADDR_OFFSET,
		/* Callers and what they call are not neighbours in the binary. */
		.address = 0x1000 + (uint64_t)(at->frame * 7919u % program->law->frames) * 37 +
			   program->number,
		.mapping_file = program->file,
		.build_id = program->build_id,
	};
	uint32_t parent;

	if (program->nodes[stack])
		return program->nodes[stack];
	parent = at->parent == UINT32_MAX ? 0 : node_of(workload, program, at->parent);
	program->nodes[stack] = tables_node(tables, parent, tables_frame(tables, &frame));
	return program->nodes[stack];
}

/* Two nodes of a law may be one in the tables: what they have adds up. */
static void publish_law(struct workload *workload, const struct program *program)
{
	size_t nodes = workload->tables.nodes.count;

	if (workload->law_capacity < nodes) {
		workload->law = mem_realloc(workload->law, nodes, sizeof(double));
		memset(workload->law + workload->law_capacity, 0,
		       (nodes - workload->law_capacity) * sizeof(double));
		workload->law_capacity = nodes;
	}
	for (uint32_t i = 0; i < program->law->nodes_count; i++)
		if (program->nodes[i])
			workload->law[program->nodes[i]] += program->law->probability[i];
}

static uint32_t make_group(struct tables *tables)
{
	struct column column = { tables_string(tables, SLICE_LITERAL("samples")),
				 tables_string(tables, SLICE_LITERAL("count")), COLUMN_DELTA };
	struct group group = { .name = tables_string(tables, SLICE_LITERAL("on_cpu")),
			       .period_type = tables_string(tables, SLICE_LITERAL("cpu")),
			       .period_unit = tables_string(tables, SLICE_LITERAL("nanoseconds")),
			       .column_count = 1,
			       .period = 52631578 };

	return tables_group(tables, &group, &column);
}

static uint32_t make_series(struct tables *tables, uint32_t service, uint32_t pod, uint32_t more)
{
	struct label labels[TABLES_LABELS_PER_SET_MAX] = {
		{ .name = tables_string(tables, SLICE_LITERAL("node")),
		  .value = numbered(tables, "node-", pod) },
		{ .name = tables_string(tables, SLICE_LITERAL("pod")),
		  .value = numbered(tables, "pod-", (service + 1) * 2654435761u + pod) },
		{ .name = tables_string(tables, SLICE_LITERAL("comm")),
		  .value = numbered(tables, "service-", service) },
	};
	uint32_t count = 3;

	for (uint32_t i = 0; i < more && count < TABLES_LABELS_PER_SET_MAX; i++)
		labels[count++] = (struct label){
			.name = numbered(tables, "label_", i),
			.value = numbered(tables, "value-", (uint64_t)pod * (i % 4 ? i : 1)),
		};
	return tables_series(tables, tables_label_set(tables, labels, count), make_group(tables));
}

static int id_order(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

static int moment_order(const void *left, const void *right)
{
	const struct moment *a = left, *b = right;

	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	return (a->tick > b->tick) - (a->tick < b->tick);
}

/* Each sample at some time of the newest report. */
static void add_moments(struct tables *tables, struct law *law, int64_t duration_ns)
{
	const struct tables_view view = tables_view_of(tables);
	const struct report *report = &view.reports[view.reports_count - 1];
	struct moment *moments;
	uint32_t count = 0;

	moments = mem_new_array(struct moment, (size_t)view.totals[report->total_first]);
	for (uint32_t row = 0; row < report->row_count; row++)
		for (int64_t i = 0; i < view.values[report->value_first + row]; i++)
			moments[count++] = (struct moment){
				row,
				(uint32_t)(next_unit(law) * (double)duration_ns / TABLES_TICK_NS), 0
			};
	if (count)
		qsort(moments, count, sizeof(*moments), moment_order);
	tables_moments(tables, moments, count);
	free(moments);
}

static void add_report(struct workload *workload, struct program *program, uint32_t series,
		       int64_t start_ns, int64_t duration_ns, uint32_t samples)
{
	uint32_t *drawn = mem_new_array(uint32_t, samples);

	tables_report_begin(&workload->tables, series, start_ns, duration_ns,
			    next_random(program->law));
	for (uint32_t i = 0; i < samples; i++)
		drawn[i] = node_of(workload, program, draw_stack(program->law));
	qsort(drawn, samples, sizeof(*drawn), id_order);
	for (uint32_t i = 0, run; i < samples; i += run) {
		int64_t count;

		for (run = 1; i + run < samples && drawn[i + run] == drawn[i];)
			run++;
		count = run;
		tables_row(&workload->tables, drawn[i], 0, &count);
	}
	if (workload->with_times)
		add_moments(&workload->tables, program->law, duration_ns);
	free(drawn);
}

static void end_batch(struct workload *workload)
{
	uint32_t reports = (uint32_t)workload->tables.reports.count;

	if (reports ==
	    (workload->batches_count ? workload->batch_ends[workload->batches_count - 1] : 0))
		return;
	mem_grow(workload->batch_ends, workload->batches_count, workload->batches_capacity);
	workload->batch_ends[workload->batches_count++] = reports;
}

void workload_make_fleet(struct workload *workload, const struct workload_fleet *fleet)
{
	struct program *programs = mem_new_array(struct program, fleet->services);
	uint32_t *series = mem_new_array(uint32_t, (size_t)fleet->services * fleet->pods);
	uint32_t runs = fleet->hosts_run ? fleet->hosts_run : fleet->services;
	int64_t step_ns = fleet->report_s * CLOCK_NS_PER_S;
	int64_t begin_ns = fleet->after * 60 * CLOCK_NS_PER_S;
	int64_t end_ns = begin_ns + fleet->minutes * 60 * CLOCK_NS_PER_S;
	struct law law;

	*workload = (struct workload){ .with_times = fleet->times };
	tables_init(&workload->tables);
	make_law(&law, fleet->stacks, FRAMES, 22, 40, 1.35, SEED);
	for (uint32_t i = 0; i < fleet->services; i++)
		programs[i] = begin_program(workload, &law, fleet->first + i);
	for (int64_t at = begin_ns; at < end_ns; at += step_ns) {
		for (uint32_t pod = 0; pod < fleet->pods; pod++) {
			for (uint32_t i = 0; i < runs; i++) {
				uint32_t service = (pod + i) % fleet->services;
				uint32_t *id = &series[service * fleet->pods + pod];

				if (!*id)
					*id = 1 + make_series(&workload->tables,
							      fleet->first + service, pod,
							      fleet->labels);
				add_report(workload, &programs[service], *id - 1,
					   WORKLOAD_START_NS + at, step_ns,
					   next_poisson(&law, fleet->mean));
			}
			end_batch(workload);
		}
	}
	for (uint32_t i = 0; i < fleet->services; i++) {
		publish_law(workload, &programs[i]);
		free(programs[i].nodes);
	}
	free(programs);
	free(series);
	free_law(&law);
}

void workload_make_host(struct workload *workload, uint32_t processes, int64_t minutes)
{
	struct program *programs = mem_new_array(struct program, processes);
	struct law *laws = mem_new_array(struct law, processes);
	uint32_t *series = mem_new_array(uint32_t, processes);
	double weights = 0;

	*workload = (struct workload){ 0 };
	tables_init(&workload->tables);
	for (uint32_t i = 0; i < processes; i++) {
		make_law(&laws[i], HOST_STACKS, HOST_FRAMES, 18, 3, 1.2, SEED + i);
		programs[i] = begin_program(workload, &laws[i], i);
		series[i] = make_series(&workload->tables, i, 0, 0);
		weights += 1.0 / (i + 4);
	}
	for (int64_t at = 0; at < minutes * 60; at += 10) {
		for (uint32_t i = 0; i < processes; i++) {
			double mean = HOST_MEAN_ALL / weights / (i + 4);
			uint32_t samples = next_poisson(&laws[i], mean);

			if (samples)
				add_report(workload, &programs[i], series[i],
					   WORKLOAD_START_NS + at * CLOCK_NS_PER_S,
					   10 * CLOCK_NS_PER_S, samples);
		}
		end_batch(workload);
	}
	for (uint32_t i = 0; i < processes; i++) {
		publish_law(workload, &programs[i]);
		free(programs[i].nodes);
		free_law(&laws[i]);
	}
	free(laws);
	free(programs);
	free(series);
}

/* What several requests have is there once. */
static void add_request(struct workload *workload, const struct tables *request)
{
	const struct tables_view view = tables_view_of(request);
	struct tables_copy copy;

	tables_copy_begin(&copy, &workload->tables, &view);
	for (uint32_t i = 0; i < view.reports_count; i++)
		tables_copy_report(&copy, i);
	tables_copy_end(&copy);
	end_batch(workload);
}

int workload_read_requests(struct workload *workload, const char *path, struct err *err)
{
	struct ingest_scratch *scratch = ingest_scratch_new(NULL);
	FILE *file = fopen(path, "rb");
	struct strbuf buffer = { 0 };
	struct requests_item item;
	struct tables request;
	int rc = 0;

	*workload = (struct workload){ 0 };
	tables_init(&workload->tables);
	tables_init(&request);
	if (!file)
		rc = err_set(err, ERR_NOT_FOUND, "cannot open \"%s\"", path);
	while (!rc && requests_read(file, &buffer, &item)) {
		struct ingest_partial partial;

		tables_reset(&request);
		rc = ingest_from_otlp(scratch, &ingest_limits_default, item.body, clock_real_ns(),
				      &request, &partial, err);
		if (!rc)
			add_request(workload, &request);
	}
	if (file)
		fclose(file);
	strbuf_free(&buffer);
	tables_free(&request);
	ingest_scratch_free(scratch);
	return rc;
}

void workload_free(struct workload *workload)
{
	tables_free(&workload->tables);
	free(workload->batch_ends);
	free(workload->law);
}

void workload_copier_begin(struct workload_copier *copier, const struct workload *workload)
{
	*copier = (struct workload_copier){ .workload = workload };
	copier->view = tables_view_of(&workload->tables);
	copier->node_ids = mem_new_array(uint32_t, copier->view.nodes_count);
	copier->node_epochs = mem_new_array(uint32_t, copier->view.nodes_count);
	copier->frame_ids = mem_new_array(uint32_t, copier->view.frames_count);
	copier->frame_epochs = mem_new_array(uint32_t, copier->view.frames_count);
}

void workload_copier_end(struct workload_copier *copier)
{
	free(copier->node_ids);
	free(copier->node_epochs);
	free(copier->frame_ids);
	free(copier->frame_epochs);
}

static uint32_t copy_text(const struct workload_copier *copier, uint32_t string,
			  struct tables *into)
{
	return tables_string(into, tables_text(&copier->view, string));
}

static uint32_t copy_frame(struct workload_copier *copier, uint32_t id, struct tables *into)
{
	struct frame frame = copier->view.frames[id];

	if (copier->frame_epochs[id] == copier->epoch)
		return copier->frame_ids[id];
	frame.mapping_file = copy_text(copier, frame.mapping_file, into);
	frame.build_id = copy_text(copier, frame.build_id, into);
	frame.function = copy_text(copier, frame.function, into);
	frame.system_name = copy_text(copier, frame.system_name, into);
	frame.file = copy_text(copier, frame.file, into);
	copier->frame_epochs[id] = copier->epoch;
	copier->frame_ids[id] = tables_frame(into, &frame);
	return copier->frame_ids[id];
}

static uint32_t copy_node(struct workload_copier *copier, uint32_t id, struct tables *into)
{
	const struct node *node = &copier->view.nodes[id];
	uint32_t parent;

	if (!id)
		return 0;
	if (copier->node_epochs[id] == copier->epoch)
		return copier->node_ids[id];
	parent = copy_node(copier, node->parent, into);
	copier->node_epochs[id] = copier->epoch;
	copier->node_ids[id] = tables_node(into, parent, copy_frame(copier, node->frame, into));
	return copier->node_ids[id];
}

static uint32_t copy_label_set(const struct workload_copier *copier, uint32_t id,
			       struct tables *into)
{
	const struct label_set *set = &copier->view.label_sets[id];
	struct label labels[TABLES_LABELS_PER_SET_MAX];

	for (uint32_t i = 0; i < set->label_count; i++) {
		labels[i] = copier->view.labels[set->label_first + i];
		labels[i].name = copy_text(copier, labels[i].name, into);
		labels[i].value = copy_text(copier, labels[i].value, into);
		labels[i].unit = copy_text(copier, labels[i].unit, into);
	}
	return tables_label_set(into, labels, set->label_count);
}

static uint32_t copy_series(const struct workload_copier *copier, uint32_t id, struct tables *into)
{
	const struct series *series = &copier->view.series[id];
	struct group group = copier->view.groups[series->group];
	struct column columns[TABLES_COLUMNS_PER_GROUP_MAX];

	for (uint32_t i = 0; i < group.column_count; i++) {
		columns[i] = copier->view.columns[group.column_first + i];
		columns[i].sample_type = copy_text(copier, columns[i].sample_type, into);
		columns[i].sample_unit = copy_text(copier, columns[i].sample_unit, into);
	}
	group.name = copy_text(copier, group.name, into);
	group.period_type = copy_text(copier, group.period_type, into);
	group.period_unit = copy_text(copier, group.period_unit, into);
	return tables_series(into, copy_label_set(copier, series->label_set, into),
			     tables_group(into, &group, columns));
}

void workload_copy_batch(struct workload_copier *copier, size_t batch, struct tables *into)
{
	const uint32_t *ends = copier->workload->batch_ends;
	const struct tables_view *view = &copier->view;

	copier->epoch++;
	for (uint32_t id = batch ? ends[batch - 1] : 0; id < ends[batch]; id++) {
		const struct report *report = &view->reports[id];
		uint32_t columns = tables_series_columns(view, report->series);

		tables_report_begin(into, copy_series(copier, report->series, into),
				    report->start_ns, report->duration_ns, report->batch_id);
		for (uint32_t i = 0; i < report->row_count; i++) {
			const struct row *row = &view->rows[report->row_first + i];
			uint32_t set =
				row->label_set ? copy_label_set(copier, row->label_set, into) : 0;

			tables_row(into, copy_node(copier, row->stack, into), set,
				   &view->values[report->value_first + (uint64_t)i * columns]);
		}
		/* Made ones have no links, and agents send no times. */
		tables_moments(into, view->moments + report->moment_first, report->moment_count);
	}
}

struct slice workload_service(const struct tables_view *view, uint32_t series)
{
	static const char *const names[] = { "service_name", "container", "systemd_unit",
					     "executable", "comm" };
	struct slice found = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !found.len; i++)
		found = tables_label_value(view, view->series[series].label_set,
					   slice_of(names[i]));
	return found;
}

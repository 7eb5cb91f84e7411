/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normalise - shared by pprof and OTLP: repairs text, names, times and frames, builds stacks and
 * label sets, and collects the rows of a report, in the batch's tables.
 *
 *   text  -> string id             normalise_text, normalise_type_text
 *   labels -> label set            normalise_labels_begin, normalise_label, normalise_labels_end
 *   frames, leaf first -> node     normalise_stack_begin, _frame, _end
 *   samples -> rows of a report    normalise_rows_begin, normalise_row, normalise_rows_end
 *
 * Every repair is counted (repairs.h). When the tables or a budget are full, `problem` is set and
 * all further ids are 0: callers check it once, at the end of a report. Used by one thread at a
 * time; memory is kept from request to request.
 */
#ifndef FIRN_SERVER_INGEST_NORMALISE_H
#define FIRN_SERVER_INGEST_NORMALISE_H

#include "base/strbuf.h"
#include "codec/wire/column.h"
#include "server/ingest/ingest.h"
#include "server/ingest/repairs.h"

#define NORMALISE_MAP_BYTES 22 /* of an entry of a map, at most: 8 bytes, three eighths used */

/* Links of a node: its first child and its next sibling; 0 = none. */
struct normalise_links {
	uint32_t first_child, next_sibling;
};

struct normaliser {
	struct budget *budget; /* pays; NULL: nobody */
	const struct ingest_limits *limits;
	struct tables *into;
	int64_t now_ns;
	const char *problem; /* NULL, or why the request cannot be taken */
	size_t wanted_bytes; /* what was asked of the budget last */
	size_t batch_bytes;  /* paid for what `into` holds */
	size_t frames_left;  /* budget of trie steps, against stacks that explode */
	struct strbuf text;  /* scratch of normalise_text */
	struct slice tenant; /* of all series; empty: none */
	bool places_differ;  /* no place is given twice: frames are added without looking */

	/* the label set being built */
	struct label labels[TABLES_LABELS_PER_SET_MAX];
	uint8_t label_levels[TABLES_LABELS_PER_SET_MAX];
	uint32_t labels_count;
	bool labels_overflow;

	/* the stack being built, leaf first, and the path of the stack before it, root first */
	uint32_t *stack;
	size_t stack_count, stack_capacity;
	bool stack_cut;
	size_t stack_shared; /* frames of that path, from the root, on which it stands */
	uint32_t *path_frames, *path_nodes;
	size_t path_count;
	COLUMN(struct normalise_links) links; /* by node of `into`; count 0: unknown */

	/* the rows of the report being built */
	uint32_t columns;
	COLUMN(struct row) rows;
	COLUMN(int64_t) values; /* rows x columns */
	struct idmap row_map;
	COLUMN(struct moment) moments;
};

void normaliser_init(struct normaliser *n, struct budget *budget);
void normaliser_free(struct normaliser *n);
void normaliser_forget(struct normaliser *n); /* the batch: nothing is paid for it any more */
void normaliser_begin(struct normaliser *n, const struct ingest_limits *limits, struct tables *into,
		      int64_t now_ns);

/*
 * If a request's stacks name each of its `places` several times (`named`), its dictionary is taken
 * to have no duplicates, and frames are added without look-ups. If a place is there twice all the
 * same, it only makes rows of its own.
 */
void normalise_places(struct normaliser *n, size_t places, size_t named);

/* 0, or ERR_LIMIT with the problem. */
int normaliser_check(const struct normaliser *n, struct err *err);

/* Well-formed UTF-8 of at most the limit's length. */
uint32_t normalise_text(struct normaliser *n, struct slice text);

/* For parts of a profile type, which ':' separates and '{' ends: such characters become '_'. */
uint32_t normalise_type_text(struct normaliser *n, struct slice text);

/*
 * Labels of a series. The last of equal names counts; that is a repair only within one `level` (a
 * profile's attribute may override a resource's).
 */
void normalise_labels_begin(struct normaliser *n);
void normalise_label(struct normaliser *n, struct slice name, struct slice value, uint8_t level);
/* The label set; ERR_LIMIT when there were more than limits->labels_max. */
int normalise_labels_end(struct normaliser *n, uint32_t *ret, struct err *err);

/* Labels of a sample, of interned text. Names may repeat; labels beyond the limit are dropped. */
void normalise_sample_label(struct normaliser *n, const struct label *label);
uint32_t normalise_sample_labels_end(struct normaliser *n);

/* An address and where it lies, for the frames of one location. */
struct normalise_place {
	enum frame_kind kind; /* as told by the sender, or FRAME_UNKNOWN */
	uint64_t address; /* in memory, or of the file when the mapping's start and limit are 0 */
	bool has_mapping;
	uint64_t memory_start, memory_limit, file_offset;
	struct slice mapping_file;
	struct slice build_id;
};
struct normalise_line {
	uint32_t function, system_name, file; /* string ids */
	int64_t line, column, start_line;
	bool inlined; /* not the last line of its location */
};

/*
 * The frame of a place, to be completed by lines; its kind may still be unknown. In two steps,
 * because the first gives the same for all places of a mapping with the same kind.
 */
struct frame normalise_mapping(struct normaliser *n, const struct normalise_place *place);
struct frame normalise_place(const struct frame *mapping, const struct normalise_place *place);
/* The frame of one line at a place. */
uint32_t normalise_line_frame(struct normaliser *n, const struct frame *place,
			      const struct normalise_line *line);
/* The frame of a place without lines: native code, or unknown when there is no address either. */
uint32_t normalise_bare_frame(struct normaliser *n, const struct frame *place);
/* Both steps, without lines. */
uint32_t normalise_bare_place(struct normaliser *n, const struct frame *mapping,
			      const struct normalise_place *place);

static inline void normalise_stack_begin(struct normaliser *n)
{
	n->stack_count = 0;
	n->stack_cut = false;
	n->stack_shared = 0;
}

/*
 * The same, for a stack that shares `shared` frames at its root with the previous one (at most its
 * path_count): these are not passed again.
 */
static inline void normalise_stack_begin_shared(struct normaliser *n, size_t shared)
{
	normalise_stack_begin(n);
	n->stack_shared = shared;
}

/* False when the stack is full: what follows towards the root is not wanted. */
static inline bool normalise_stack_frame(struct normaliser *n, uint32_t frame)
{
	if (n->stack_count + n->stack_shared == n->limits->stack_depth_max) {
		n->stack_cut = true;
		return false;
	}
	n->stack[n->stack_count++] = frame;
	return true;
}

uint32_t normalise_stack_end(struct normaliser *n);

void normalise_rows_begin(struct normaliser *n, uint32_t columns);
/* Copies the values, with negative ones as zero. False if all are zero. */
bool normalise_values(const int64_t *values, uint32_t columns, int64_t *ret);
/* Adds up with the row of the same stack and labels, if there is one. Returns the row. */
uint32_t normalise_row(struct normaliser *n, uint32_t stack, uint32_t label_set,
		       const int64_t *values);
/* When a sample of the row was taken; UINT32_MAX: nobody knows. */
void normalise_moment(struct normaliser *n, uint32_t row, uint32_t tick,
		      const struct trace_link *link);
/* Makes the report. */
int normalise_rows_end(struct normaliser *n, uint32_t series, int64_t start_ns, int64_t duration_ns,
		       uint64_t batch_id, struct err *err);

int64_t normalise_time(struct normaliser *n, int64_t time_ns);
int64_t normalise_duration(int64_t duration_ns);

/* A duration means delta; else Go's totals since the start are cumulative, all others gauges. */
enum column_kind normalise_kind(struct slice sample_type, int64_t duration_ns);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables - profiles in columns: the one data structure for samples everywhere in firn.
 *
 *   strings <- labels <- label sets <-+
 *   strings <- columns <- groups <----+-- series <-+
 *   strings <- frames <- nodes (trie) <------------+-- reports -> rows of
 *                                                   |             (stack, label set, values)
 *                             trace links <---------+-- moments: when samples of a row were taken
 *
 * A decoded request is a small set of tables ("batch"), the memtable is a large one that grows, a
 * part file is an encoded one, and the WAL stores batches (server/persist/log/tables_codec.h).
 * Queries read them all through `struct tables_view`.
 *
 * Ids are dense indexes into the array of their kind, valid only inside their own tables. Id 0 of
 * strings is "", of label sets the empty set, of nodes the root (no frame). A node's parent has a
 * smaller id than the node: one reverse pass sums a subtree.
 *
 * Writers: one thread at a time. Readers take a view (tables_view_of) under the same lock as the
 * writer, then read it without any lock while the tables live; elements below the view's counts
 * never change. Limits: TABLES_*_MAX below; adding beyond one returns TABLES_FULL.
 */
#ifndef FIRN_MODEL_TABLES_H
#define FIRN_MODEL_TABLES_H

#include "base/idmap.h"
#include "base/slice.h"
#include "base/vmarray.h"

#define TABLES_FULL UINT32_MAX

/*
 * A set reserves address space for all of these at once, about 27 GB. A server holds dozens of
 * sets, and the thread sanitizer leaves a program 0.5 to 1.5 TB.
 */
#define TABLES_STRING_BYTES_MAX ((size_t)4 << 30)
#define TABLES_IDS_MAX ((size_t)1 << 25) /* strings, frames, labels, label sets, series */
#define TABLES_NODES_MAX ((size_t)1 << 28)
#define TABLES_ROWS_MAX ((size_t)1 << 28)   /* rows in one set of tables */
#define TABLES_VALUES_MAX ((size_t)1 << 29) /* values in one set of tables */
#define TABLES_MOMENTS_MAX ((size_t)1 << 27)
#define TABLES_COLUMNS_PER_GROUP_MAX 16u /* sample types that arrive together */
#define TABLES_LABELS_PER_SET_MAX 64u

struct string_ref {
	uint64_t offset; /* into string_bytes */
	uint32_t len;
};

/* A label of a series (text only), or of a sample (text or number). */
struct label {
	uint32_t name;	  /* string id */
	uint32_t value;	  /* string id; 0 for a number */
	uint32_t unit;	  /* string id, for a number; else 0 */
	uint32_t numeric; /* 1: the value is `number`; 0: it is `value` */
	int64_t number;
};

/*
 * Labels label_first .. +count, sorted by name (bytewise), then value. In the label set of a
 * series, names are unique.
 */
struct label_set {
	uint32_t label_first;
	uint32_t label_count;
};

/* What a value means over time. */
enum column_kind {
	COLUMN_DELTA, /* amount during the report; adds up */
	COLUMN_GAUGE, /* state at an instant; never adds up over time */
	/* Amount since the program started; only until ingest has made deltas (persist/baseline.h).
	 */
	COLUMN_CUMULATIVE,
};

struct column {
	uint32_t sample_type; /* "samples", "inuse_space" */
	uint32_t sample_unit; /* "count", "bytes" */
	uint32_t kind;	      /* enum column_kind */
};

/* Sample types that arrive together: they share rows and have one value each per row. */
struct group {
	uint32_t name; /* "on_cpu", "memory" */
	uint32_t period_type;
	uint32_t period_unit;
	uint32_t column_first;
	uint32_t column_count; /* 1 .. TABLES_COLUMNS_PER_GROUP_MAX */
	int64_t period;
};

struct series {
	uint32_t label_set;
	uint32_t group;
};

enum frame_kind {
	FRAME_UNKNOWN,
	FRAME_NATIVE,
	FRAME_KERNEL,
	FRAME_GO,
	FRAME_RUST,
	FRAME_JVM,
	FRAME_PYTHON,
	FRAME_RUBY,
	FRAME_NODE,
	FRAME_PHP,
	FRAME_PERL,
	FRAME_DOTNET,
	FRAME_BEAM,
	FRAME_LUA,
	FRAME_MARKER,	      /* not code: "[truncated: ...]" */
	FRAME_PYTHON_RUNTIME, /* native code of the interpreter, between Python's functions */
	FRAME_V8_RUNTIME,     /* the same of V8, and of the program around it */
	FRAME_RUBY_RUNTIME,   /* the same of Ruby */
	FRAME_DOTNET_RUNTIME, /* the same of CoreCLR */
	FRAME_PHP_RUNTIME,    /* the same of PHP */
	FRAME_BEAM_RUNTIME,   /* the same of Erlang */
	FRAME_PERL_RUNTIME,   /* the same of Perl */
	FRAME_LUA_RUNTIME,    /* the same of LuaJIT */
	FRAME_WASM,	      /* WebAssembly, whatever it was compiled from */
	FRAME_KINDS
};

enum frame_flag {
	FRAME_INLINED = 1,     /* inlined into the next frame towards the root (same address) */
	FRAME_ADDR_OFFSET = 2, /* address is a file offset; otherwise an ELF virtual address */
};

/*
 * One frame. Native code without names has mapping_file, build_id and address, and is given
 * functions at query time; others carry function, file and line. Unused ids are 0.
 */
struct frame {
	uint32_t kind;	/* enum frame_kind */
	uint32_t flags; /* enum frame_flag */
	uint64_t address;
	uint32_t mapping_file; /* path of the binary, "[kernel]", "[ext4]", "[vdso]", "[anon]" */
	uint32_t build_id;     /* lower-case hex */
	uint32_t function;     /* demangled or source name */
	uint32_t system_name;  /* as in the binary, when it differs */
	uint32_t file;
	uint32_t line; /* 0 = unknown, likewise column and start_line */
	uint32_t column;
	uint32_t start_line; /* of the function */
};

/*
 * The members that decide whether two frames are the same; the others are 0. Start line, column
 * and system name do not count, nor does the binary's path if a build id, or function and file,
 * identify the code: producers sometimes omit these or write them differently, which must not make
 * another stack. The values that came first are kept.
 */
static inline struct frame frame_identity(const struct frame *frame)
{
	struct frame identity = *frame;

	if (frame->build_id || (frame->function && frame->file))
		identity.mapping_file = 0;
	if (frame->function)
		identity.system_name = 0;
	identity.column = identity.start_line = 0;
	return identity;
}

/* A node of the trie is a stack: the frames from it up to the root. */
struct node {
	uint32_t parent;
	uint32_t frame; /* undefined for the root */
};

struct report {
	uint32_t series;
	uint32_t row_count;
	uint64_t row_first;
	uint64_t value_first; /* values[value_first + row * columns + column] */
	uint64_t total_first; /* totals[total_first + column] */
	int64_t start_ns;
	int64_t duration_ns; /* 0 for instantaneous */
	uint64_t batch_id;   /* with series and start: the identity of the report */
	uint64_t moment_first;
	uint32_t moment_count; /* 0 if no times were stored */
};

struct row {
	uint32_t stack;	    /* node id */
	uint32_t label_set; /* sample labels; 0 = none */
};

#define TABLES_TICK_NS 1000000 /* the unit of ticks: a millisecond */

/*
 * A sample of a row: its time, and the request it was taken for. Optional; the moments of a report
 * are ordered by row, then tick. A row may have fewer moments than its value says.
 */
struct moment {
	uint32_t row;  /* index in its report */
	uint32_t tick; /* since the start of the report; UINT32_MAX = only the link is known */
	uint32_t link; /* 0 = none */
};

/* The span during which a sample was taken (W3C trace context, OpenTelemetry). Link 0 is zero. */
struct trace_link {
	uint8_t trace_id[16];
	uint8_t span_id[8];
};

struct tables_view {
	const char *string_bytes;
	const struct string_ref *strings;
	const struct label *labels;
	const struct label_set *label_sets;
	const struct column *columns;
	const struct group *groups;
	const struct series *series;
	const struct frame *frames;
	const struct node *nodes;
	const struct report *reports;
	const struct row *rows;
	const int64_t *values;
	const int64_t *totals;
	const struct moment *moments;
	const struct trace_link *links;
	uint64_t string_bytes_count;
	uint64_t rows_count, values_count, totals_count, moments_count;
	uint32_t strings_count, labels_count, label_sets_count, columns_count, groups_count;
	uint32_t series_count, frames_count, nodes_count, reports_count, links_count;
};

struct tables {
	struct vmarray string_bytes, strings, labels, label_sets, columns, groups, series, frames;
	struct vmarray nodes, reports, rows, values, totals, moments, links;
	struct idmap string_map, label_set_map, group_map, series_map, frame_map, node_map;
	struct idmap link_map;
};

void tables_init(struct tables *tables);
void tables_free(struct tables *tables);
void tables_reset(struct tables *tables); /* empty again, some memory kept: for the next request */

struct tables_view tables_view_of(const struct tables *tables);
size_t tables_bytes(const struct tables *tables); /* memory in use, roughly */

/* Finds without adding; TABLES_FULL: it is not there. */
uint32_t tables_find_string(const struct tables *tables, struct slice text);

/* Each finds or adds, and returns the id, or TABLES_FULL. */
uint32_t tables_string(struct tables *tables, struct slice text);
uint32_t tables_frame(struct tables *tables, const struct frame *frame);
uint32_t tables_node(struct tables *tables, uint32_t parent, uint32_t frame);
/* Adds a node without a lookup: its parent is new, so the node cannot exist yet. */
uint32_t tables_new_node(struct tables *tables, uint32_t parent, uint32_t frame);
/*
 * Adds without a lookup, and no later lookup finds it: for callers whose frames and nodes are all
 * different, or that accept duplicates.
 */
uint32_t tables_add_frame(struct tables *tables, const struct frame *frame);
/* The same, with a copy that the caller completes in place; NULL if the tables are full. */
struct frame *tables_new_frame(struct tables *tables, const struct frame *like, uint32_t *ret_id);
uint32_t tables_add_node(struct tables *tables, uint32_t parent, uint32_t frame);
/* Adds a node for each frame, each the child of the one before. Returns the first id. All or none.
 */
uint32_t tables_add_path(struct tables *tables, uint32_t parent, const uint32_t *frames,
			 uint32_t count);
/* Sorts `labels` in place and removes duplicates. count <= TABLES_LABELS_PER_SET_MAX. */
uint32_t tables_label_set(struct tables *tables, struct label *labels, uint32_t count);
/* group->column_first is ignored; the columns are given. */
uint32_t tables_group(struct tables *tables, const struct group *group,
		      const struct column *columns);
uint32_t tables_series(struct tables *tables, uint32_t label_set, uint32_t group);

uint32_t tables_link(struct tables *tables, const struct trace_link *link);

/*
 * Begins a report; the rows that follow belong to it, and its totals are updated with each row.
 * Rows with the same (stack, label set) may repeat. `values` has one element per column of the
 * series' group. If no further report or row fits, tables_report_begin returns TABLES_FULL and
 * tables_row false. tables_report_cancel removes the report that was begun last.
 */
uint32_t tables_report_begin(struct tables *tables, uint32_t series, int64_t start_ns,
			     int64_t duration_ns, uint64_t batch_id);
bool tables_row(struct tables *tables, uint32_t stack, uint32_t label_set, const int64_t *values);
/* All rows at once, or none. */
bool tables_rows(struct tables *tables, const struct row *rows, uint32_t count,
		 const int64_t *values);
void tables_report_cancel(struct tables *tables);
/* Sorts moments into the order of reports (above); equal ones by link. */
void tables_order_moments(struct moment *moments, size_t count);
/*
 * Adds the moments of the newest report, once, after its rows and in the order above. False if
 * they do not fit: the report is valid without them.
 */
bool tables_moments(struct tables *tables, const struct moment *moments, uint32_t count);

/*
 * Copies elements of another tables_view into `into`, and maps their ids. The maps hold what was
 * copied; they are as long as the view's counts and valid for one (from, into) pair.
 */
struct tables_copy {
	struct tables *into;
	struct tables_view from;
	/* Indexed by id in `from`; TABLES_FULL = not yet copied. */
	uint32_t *strings, *frames, *nodes, *label_sets, *groups, *series, *links;
	uint32_t *trail; /* scratch of tables_copy_node */
	size_t trail_capacity;
};

void tables_copy_begin(struct tables_copy *copy, struct tables *into,
		       const struct tables_view *from);
void tables_copy_end(struct tables_copy *copy);
uint32_t tables_copy_string(struct tables_copy *copy, uint32_t id);
uint32_t tables_copy_label_set(struct tables_copy *copy, uint32_t id);
uint32_t tables_copy_series(struct tables_copy *copy, uint32_t id);
uint32_t tables_copy_node(struct tables_copy *copy, uint32_t id); /* many: model/stack_index.h */
/* Copies the moments of a report to the newest report of `into`, which has the same rows. */
bool tables_copy_moments(struct tables_copy *copy, const struct report *report);
/* Copies a report with its rows; false if `into` is full (nothing of the report is left there). */
bool tables_copy_report(struct tables_copy *copy, uint32_t report);

static inline struct slice tables_text(const struct tables_view *view, uint32_t string)
{
	const struct string_ref *ref = &view->strings[string];

	return (struct slice){ view->string_bytes + ref->offset, ref->len };
}

static inline uint32_t tables_series_columns(const struct tables_view *view, uint32_t series)
{
	return view->groups[view->series[series].group].column_count;
}

/* The value of a label of a set, or "" (a missing label equals the empty string). */
struct slice tables_label_value(const struct tables_view *view, uint32_t label_set,
				struct slice name);

/* OpenTelemetry's names: "native", "kernel", "cpython" ... */
const char *frame_kind_name(enum frame_kind kind);
enum frame_kind frame_kind_of(struct slice name); /* FRAME_UNKNOWN for names not known */

#endif

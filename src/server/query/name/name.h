/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name - frames to functions: each distinct frame becomes its inline chain of functions.
 *
 * Frames that carry a function keep it. Native frames go through the resolver, once per distinct
 * frame; each function of a binary is named once. A frame that stays unnamed is shown by its
 * address, with a reason.
 *
 * Frames are one function, whatever their address, line, build or path, if they agree in:
 *  - in a binary: its name, the binary's base name and the kind. Not the source file: builds in
 *    other directories, or without debug information, are still the same function. Functions of
 *    one binary with the same name (static ones) are therefore one.
 *  - without a binary, and in interpreted code: its name, source file, the base name of the binary
 *    if any, and the kind.
 *  - a function of which only the boundaries are known: the offset of its start in the file, base
 *    name of the binary, build id.
 *  - an unnamed address: address, base name of the binary, build id. "[anon]" is one.
 * The other fields come from the first frame that knows them. name_table.apart keeps functions of
 * different source files, paths of binaries or addresses apart.
 */
#ifndef FIRN_SERVER_QUERY_NAME_NAME_H
#define FIRN_SERVER_QUERY_NAME_NAME_H

#include "server/query/tree/unresolved.h"
#include "server/resolve/display/demangle.h"
#include "server/resolve/resolver.h"

#define NAME_BY_ADDRESS (UINT32_MAX - 1) /* no function: see by_address */

enum { NAME_APART_FILE = 1, NAME_APART_MAPPING = 2, NAME_APART_ADDRESS = 4 };

struct name_line {
	uint32_t function; /* index into functions */
	uint32_t line, column;
	bool inlined; /* into the next line towards the root */
};

/* The chain of one frame, innermost first; at least one line. */
struct name_chain {
	uint32_t line_first, line_count; /* line_count 0 = not yet named */
	bool resolved;			 /* false: called by its address */
};

/* A binary that frames lie in. */
struct name_binary {
	struct slice build_id, mapping;
	bool by_offset;
	struct resolver_symbols symbols;
};

/* A function of a symbol table, known by the numbers of its texts there: named once. */
struct name_symbol {
	struct symbol_line_texts of;
	uint64_t address; /* as the function's */
	uint32_t start_line, binary;
	enum frame_kind kind;
	uint32_t function;
};

struct name_table {
	struct work *work;
	struct resolver *resolver;
	const struct tables_view *view; /* whose frames are named now */
	/* Addresses get no functions but NAME_BY_ADDRESS, with the number of the reason as line. */
	bool by_address;
	unsigned apart;	       /* NAME_APART_ bits; set before anything is named */
	struct arena *strings; /* where the functions' texts live: the tree's */
	struct arena scratch;  /* of demangling */
	uint32_t scratch_uses;
	enum demangle_mode demangle;
	int64_t wait_until_ns; /* for symbols that have to be read first */
	int64_t give_up_at_ns; /* likewise, where that is RESOLVE_WAIT_ALWAYS: what is not there
				* then is pending */
	uint64_t pending;      /* frames whose symbols did not come in time */
	struct name_binary *binaries;
	size_t binaries_count, binaries_capacity;
	uint32_t binary_last; /* that was asked for */
	struct idmap binaries_map;
	struct symbol_text_pool *texts; /* of all binaries, unpacked */
	size_t texts_bytes;		/* of it, as the work has counted them */
	struct name_symbol *symbols;
	size_t symbols_count, symbols_capacity;
	struct idmap symbols_map;
	struct unresolved_list unresolved;
	struct unresolved_place place; /* of the last that was added, */
	uint32_t place_number;	       /* and its number; 0 = none */
	struct name_chain *chains;     /* by frame id */
	size_t chains_capacity;
	struct name_line *lines;
	size_t lines_count, lines_capacity;
	struct tree_function *functions; /* 0 is the root, "total" */
	size_t functions_count, functions_capacity;
	struct idmap map;
};

/* name_end is due after name_begin, whatever it returns. */
int name_begin(struct name_table *table, struct work *work, struct resolver *resolver,
	       struct arena *strings, struct err *err);
void name_end(struct name_table *table);

/* From now on frames are those of this view, which must live until name_end. */
int name_view(struct name_table *table, const struct tables_view *view, struct err *err);

/*
 * Instead of name_view, for several views side by side: what was named of one stays while frames of
 * another are named. False when over budget.
 */
struct name_column {
	const struct tables_view *view;
	struct name_chain *chains;
};
bool name_column_begin(struct name_table *table, const struct tables_view *view,
		       struct name_column *ret);
void name_use_column(struct name_table *table, const struct name_column *column);

/* NULL when over budget. Valid until the next call. */
const struct name_chain *name_frame(struct name_table *table, uint32_t frame);

/*
 * The number of the reason why a frame has no name; 0: it has one. IDMAP_NONE when over budget.
 * *ret_is_address: not even its function is known, so its address is shown.
 */
uint32_t name_missing(struct name_table *table, uint32_t frame, bool *ret_is_address);

/* The same of one line of a frame that has been named. */
uint32_t name_line_missing(const struct name_table *table, const struct name_line *line);

/* The function that stands for a group-by value; IDMAP_NONE when over budget. */
uint32_t name_group(struct name_table *table, struct slice value);

/* The base name of a binary: what two addresses must share to be shown alike. */
struct slice name_binary_of(struct slice mapping);

/* The text shown for code without a name: "0x4a3f [libfoo.so]", "[anon]", "[unknown]". */
void name_address(struct strbuf *out, struct slice mapping, uint64_t address);

/* True if the text has the address: else all unnamed code of a binary is one. */
bool name_has_address(struct slice mapping, uint64_t address);

/* The order of functions with equal values: by name, binary, file, id. */
int name_order(const struct tree_function *functions, uint32_t a_id, uint32_t b_id);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `go tool pprof` reads render_pprof and its -top agrees with render_top, line by line, on random
 * trees: recursion, inlined functions, unnamed code, one name in several binaries, three units.
 */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/query/render/render.h"

#define ROUNDS 48

static uint64_t random_state = 7;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((random_state >> 33) % below);
}

static bool have_go(void)
{
	return !system("go tool -n pprof >/dev/null 2>&1");
}

/* What the command prints from the first line that starts with `from` on. */
static char *output_of(const char *command, const char *from)
{
	struct strbuf out = { 0 };
	FILE *pipe = popen(command, "r");
	char line[4096];

	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe))
		if (out.len || !strncmp(line, from, strlen(from)))
			strbuf_add_text(&out, line);
	if (pclose(pipe))
		fail_msg("%s failed", command);
	strbuf_reserve(&out, 1)[0] = '\0';
	return out.data;
}

static char *go_pprof(const struct tree *tree, const char *options, const char *from)
{
	char path[] = "/tmp/firn-pprof-XXXXXX";
	struct strbuf bytes = { 0 };
	char command[256];
	int fd = mkstemp(path);
	char *text;

	assert_true(fd >= 0);
	render_pprof(tree, &bytes);
	assert_int_equal(write(fd, bytes.data, bytes.len), (ssize_t)bytes.len);
	close(fd);
	strbuf_free(&bytes);
	snprintf(command, sizeof(command), "go tool pprof %s %s 2>&1", options, path);
	text = output_of(command, from);
	unlink(path);
	return text;
}

static void expect_go_agrees(const struct tree *tree, const char *options, size_t limit)
{
	char *theirs = go_pprof(tree, options, "      flat");
	struct strbuf ours = { 0 };

	render_top(tree, limit, &ours);
	assert_string_equal(strbuf_text(&ours), theirs);
	strbuf_free(&ours);
	free(theirs);
}

static uint32_t random_frame(struct tables *tables)
{
	static const char *const names[] = { "main",
					     "run",
					     "std::vector<int>::push_back(int&&)",
					     "operator new(unsigned long)",
					     "",
					     "runtime.goexit",
					     "fmt.(*pp).doPrintf",
					     "a b",
					     "caf\xc3\xa9",
					     "x",
					     "y" };
	static const char *const binaries[] = { "/bin/app", "/lib/libc.so.6", "[kernel]", "",
						"[anon]" };
	struct frame frame = { .kind = FRAME_NATIVE, .address = draw(6) * 16 };
	const char *name = names[draw(sizeof(names) / sizeof(names[0]))];

	frame.function = tables_string(tables, slice_of(name));
	if (*name && draw(2))
		frame.system_name = tables_string(tables, SLICE_LITERAL("_Zmangled"));
	if (*name && draw(2))
		frame.file = tables_string(tables, draw(2) ? SLICE_LITERAL("/src/a.c")
							   : SLICE_LITERAL("b.c"));
	frame.mapping_file = tables_string(
		tables, slice_of(binaries[draw(sizeof(binaries) / sizeof(binaries[0]))]));
	frame.build_id = tables_string(tables, draw(2) ? SLICE_LITERAL("") : SLICE_LITERAL("ab12"));
	frame.line = draw(3);
	frame.start_line = draw(2);
	return tables_frame(tables, &frame);
}

/* A frame at the caller's address, inlined into it; the caller's otherwise. */
static uint32_t inlined_frame(struct tables *tables, uint32_t caller)
{
	struct frame frame = ((const struct frame *)tables->frames.data)[caller];

	if (!frame.function)
		return random_frame(tables);
	frame.function =
		tables_string(tables, draw(2) ? SLICE_LITERAL("x") : SLICE_LITERAL("tiny"));
	frame.flags = FRAME_INLINED;
	return tables_frame(tables, &frame);
}

static void random_world(struct world *world, const char *type)
{
	struct tables *tables;
	int64_t scale = 1;

	world_init(world, 1 + draw(2));
	for (size_t v = 0; v < world->views_count; v++) {
		tables = &world->tables[v];
		world_report(tables, world_series(tables, type, 10000000, "comm=x"),
			     1600000000000000000ll, 10000000000ll);
		for (uint32_t row = 0; row < 40; row++) {
			uint32_t node = 0, depth = draw(10);

			for (uint32_t i = 0; i < depth; i++) {
				uint32_t frame =
					node && draw(3) == 0
						? inlined_frame(
							  tables,
							  ((struct node *)tables->nodes.data)[node]
								  .frame)
						: random_frame(tables);

				node = tables_node(tables, node, frame);
			}
			if (draw(5) == 0)
				scale = scale * 17 % 1000003;
			assert_true(tables_row(tables, node,
					       world_labels(tables, draw(2) ? "thread=t" : ""),
					       &(int64_t){ draw(1000) * scale }));
		}
	}
}

/* The table that comes without a tree is the tree's. */
static void expect_same_table(struct world *world, const char *type, const char *group_by,
			      const struct tree *tree)
{
	struct query_params params = { .to_ns = INT64_MAX, .rows_only = true };
	struct strbuf ours = { 0 }, table = { 0 };
	struct tree *rows;

	if (*group_by)
		params.group_by[params.group_by_count++] = slice_of(group_by);
	assert_int_equal(world_ask(world, type, &params, &rows, NULL), 0);
	assert_non_null(rows->rows);
	render_top(tree, 0, &ours);
	render_top(rows, 0, &table);
	assert_string_equal(strbuf_text(&table), strbuf_text(&ours));
	strbuf_free(&ours);
	strbuf_free(&table);
	tree_free(rows);
}

static void go_pprof_top_agrees_with_ours(void **state)
{
	static const char *const types[] = { WORLD_ON_CPU,
					     "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta",
					     "memory:inuse_space:bytes:space:bytes",
					     "block:contentions:events:contentions:count:delta" };

	(void)state;
	if (!have_go()) {
		print_message("# skip: go tool pprof is not here\n");
		skip();
	}
	for (int i = 0; i < ROUNDS; i++) {
		const char *type = types[i % 4];
		struct world world;
		struct tree *tree;

		random_world(&world, type);
		tree = world_tree_by(&world, type, 0, INT64_MAX, i % 3 ? "" : "thread");
		expect_go_agrees(tree, "-top -nodefraction=0 -edgefraction=0", 0);
		expect_same_table(&world, type, i % 3 ? "" : "thread", tree);
		tree_free(tree);
		world_free(&world);
	}
}

static void go_pprof_reads_all_fields(void **state)
{
	struct world world;
	struct tree *tree;
	char *raw;

	(void)state;
	if (!have_go()) {
		print_message("# skip: go tool pprof is not here\n");
		skip();
	}
	world_init(&world, 1);
	world_report(&world.tables[0],
		     world_series(&world.tables[0], WORLD_ON_CPU, 10000000, "comm=nginx"),
		     1600000000000000000ll, 10000000000ll);
	world_row(&world.tables[0], "main@/bin/app:0x10;run@/bin/app:0x20", "", 3);
	tree = world_tree_by(&world, WORLD_ON_CPU, 0, INT64_MAX, "comm");
	raw = go_pprof(tree, "-raw", "PeriodType");
	assert_string_equal(raw, "PeriodType: cpu nanoseconds\n"
				 "Period: 10000000\n"
				 "Time: 2020-09-13 12:26:40 +0000 UTC\n"
				 "Duration: 10s\n"
				 "Samples:\n"
				 "samples/count[dflt] cpu/nanoseconds\n"
				 "          3   30000000: 1 2 \n"
				 "                comm:[nginx]\n"
				 "Locations\n"
				 "     1: 0x20 M=1 run :0 s=0()\n"
				 "     2: 0x10 M=1 main :0 s=0()\n"
				 "Mappings\n"
				 "1: 0x0/0x21/0x0 /bin/app  [FN][FL][LN][IN]\n");
	free(raw);
	tree_free(tree);
	world_free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(go_pprof_top_agrees_with_ours),
		cmocka_unit_test(go_pprof_reads_all_fields),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Unnamed native frames become inline chains of functions: a real program and the real resolver. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "coded.h"
#include "server/query/index/index_cache.h"
#include "server/query/render/render.h"
#include "server/resolve/resolver.h"
#include "server/resolve/worker/symbol_worker.h"

#define BUILD_ID "00112233445566778899aabbccddeeff00112233"

static const char program_text[] =
	"static inline __attribute__((always_inline)) int inner(int x)\n"
	"{\n"
	"	__asm__ volatile(\"nop\\n.globl spot\\nspot: nop\\nnop\");\n"
	"	return x * 3;\n"
	"}\n"
	"__attribute__((noinline)) int outer(int x) { return inner(x) + 1; }\n"
	"__attribute__((noinline)) int put(int x) __asm__(\"_ZN3boxIiE3putEi\");\n"
	"__attribute__((noinline)) int put(int x) { return x * 5 + 2; }\n"
	"int main(int argc, char **argv) { (void)argv; return outer(argc) + put(argc); }\n";

struct program {
	char folder[32], path[64];
	unsigned long long spot, put, main;
	struct resolver *resolver;
};

static unsigned long long symbol(const struct program *program, const char *name)
{
	unsigned long long address = 0;
	char command[192];
	FILE *pipe;

	snprintf(command, sizeof(command), "nm %s | grep ' %s$'", program->path, name);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_int_equal(fscanf(pipe, "%llx", &address), 1);
	pclose(pipe);
	return address;
}

static int set_up(void **state)
{
	const struct resolver_options options = { .local_files = true };
	struct program *program = calloc(1, sizeof(*program));
	char command[320];
	FILE *file;

	snprintf(program->folder, sizeof(program->folder), "/tmp/firn-symbols-XXXXXX");
	if (!mkdtemp(program->folder))
		return -1;
	snprintf(program->path, sizeof(program->path), "%s/program", program->folder);
	snprintf(command, sizeof(command), "%s/program.c", program->folder);
	file = fopen(command, "w");
	if (!file || fputs(program_text, file) < 0 || fclose(file))
		return -1;
	snprintf(command, sizeof(command),
		 "cc -g -O2 -w -Wl,--build-id=0x" BUILD_ID " -o %s %s/program.c", program->path,
		 program->folder);
	if (system(command))
		return -1;
	program->spot = symbol(program, "spot");
	program->put = symbol(program, "_ZN3boxIiE3putEi");
	program->main = symbol(program, "main");
	*state = program;
	return resolver_new(&options, &program->resolver, NULL);
}

static int tear_down(void **state)
{
	struct program *program = *state;
	char command[96];

	resolver_free(program->resolver);
	snprintf(command, sizeof(command), "%s.c", program->path);
	unlink(command);
	unlink(program->path);
	rmdir(program->folder);
	free(program);
	return 0;
}

static uint32_t native(struct tables *tables, const struct program *program, uint64_t address,
		       const char *build_id)
{
	const struct frame frame = {
		.kind = FRAME_NATIVE,
		.address = address,
		.mapping_file = tables_string(tables, slice_of(program->path)),
		.build_id = tables_string(tables, slice_of(build_id)),
	};

	return tables_frame(tables, &frame);
}

static struct tree *ask_as(struct world *world, struct resolver *resolver, enum demangle_mode mode)
{
	struct query_source source = world_source(world);
	struct query_params params = { .to_ns = 1, .demangle = mode };
	struct selector selector;
	struct tree *tree = NULL;

	source.resolver = resolver;
	assert_int_equal(selector_parse(slice_of(WORLD_ON_CPU), &selector, NULL), 0);
	params.selector = &selector;
	assert_int_equal(query_tree(&source, &params, &tree, NULL), 0);
	selector_free(&selector);
	return tree;
}

static struct tree *ask(struct world *world, struct resolver *resolver)
{
	return ask_as(world, resolver, DEMANGLE_FULL);
}

static void unnamed_frames_get_their_inline_chain(void **state)
{
	const struct program *program = *state;
	struct strbuf out = { 0 };
	struct world world;
	struct tree *tree;
	uint32_t node;

	world_init(&world, 1);
	world_report(&world.tables[0], world_series(&world.tables[0], WORLD_ON_CPU, 1, ""), 0, 1);
	node = tables_node(&world.tables[0], 0,
			   native(&world.tables[0], program, program->main, BUILD_ID));
	for (uint64_t at = 0; at < 2; at++) /* two addresses, one function */
		assert_true(tables_row(&world.tables[0],
				       tables_node(&world.tables[0], node,
						   native(&world.tables[0], program,
							  program->spot + at, BUILD_ID)),
				       0, &(int64_t){ 2 }));
	tree = ask(&world, program->resolver);
	render_folded(tree, &out);
	assert_string_equal(strbuf_text(&out), "main;outer;inner 4\n");
	assert_int_equal(tree->nodes_count, 4);
	assert_int_equal(tree->nodes[2].inlined, 0);
	assert_int_equal(tree->nodes[3].inlined, 1);
	assert_int_equal(tree->functions[tree->nodes[2].function].start_line, 6);
	assert_int_equal(tree->stacks_count, 2);
	assert_int_equal(tree->locations_count, 3);
	assert_int_equal(tree->locations[0].line_count, 2);
	assert_int_equal(tree->locations[0].unresolved, 0);
	assert_int_equal(tree->lines[tree->locations[0].line_first].line, 3);
	strbuf_free(&out);
	tree_free(tree);
	world_free(&world);
}

static void frames_of_another_build_stay_addresses(void **state)
{
	const struct program *program = *state;
	struct strbuf out = { 0 };
	struct world world;
	struct tree *tree;

	world_init(&world, 1);
	world_report(&world.tables[0], world_series(&world.tables[0], WORLD_ON_CPU, 1, ""), 0, 1);
	for (int i = 0; i < 2; i++)
		assert_true(tables_row(
			&world.tables[0],
			tables_node(&world.tables[0], 0,
				    native(&world.tables[0], program, 0x1234, i ? "aa00" : "bb00")),
			0, &(int64_t){ 1 }));
	tree = ask(&world, program->resolver);
	render_folded(tree, &out);
	assert_string_equal(strbuf_text(&out), "0x1234 [program] 1\n0x1234 [program] 1\n");
	assert_int_equal(tree->locations[0].unresolved, 1);
	strbuf_free(&out);
	tree_free(tree);
	world_free(&world);
}

/* As the agent does with a file that frames do not name by its path. */
static void resolver_offer_program(const struct program *program)
{
	int fd = open(program->path, O_RDONLY | O_CLOEXEC);

	resolver_offer(program->resolver, SLICE_LITERAL(BUILD_ID), slice_of(program->path), fd);
	close(fd);
}

static void add_stack(struct world *world, const uint32_t *frames, size_t count, int64_t value)
{
	uint32_t node = 0;

	for (size_t i = 0; i < count; i++)
		node = tables_node(&world->tables[0], node, frames[i]);
	assert_true(tables_row(&world->tables[0], node, 0, &value));
}

/* A name from the binary and one that a producer sent both show as much as was asked for. */
static void names_are_shown_as_asked(void **state)
{
	static const struct {
		enum demangle_mode mode;
		const char *folded;
	} cases[] = {
		{ DEMANGLE_FULL, "box<int>::put(int);a.B.c(String) 1\n" },
		{ DEMANGLE_TEMPLATES, "box<int>::put;a.B.c 1\n" },
		{ DEMANGLE_SIMPLE, "box::put;a.B.c 1\n" },
		{ DEMANGLE_NONE, "_ZN3boxIiE3putEi;La/B:::c(Ljava/lang/String:)V 1\n" },
	};
	const struct program *program = *state;
	struct strbuf out = { 0 };
	struct frame java = { .kind = FRAME_JVM };
	struct world world;
	uint32_t frames[2];

	world_init(&world, 1);
	world_report(&world.tables[0], world_series(&world.tables[0], WORLD_ON_CPU, 1, ""), 0, 1);
	frames[0] = native(&world.tables[0], program, program->put, BUILD_ID);
	java.function =
		tables_string(&world.tables[0], SLICE_LITERAL("La/B;::c(Ljava/lang/String;)V"));
	frames[1] = tables_frame(&world.tables[0], &java);
	add_stack(&world, frames, 2, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct tree *tree = ask_as(&world, program->resolver, cases[i].mode);
		bool is_raw = cases[i].mode == DEMANGLE_NONE;

		strbuf_clear(&out);
		render_folded(tree, &out);
		assert_string_equal(strbuf_text(&out), cases[i].folded);
		assert_true(
			slice_is(tree->functions[1].system_name, is_raw ? "" : "_ZN3boxIiE3putEi"));
		tree_free(tree);
	}
	strbuf_free(&out);
	world_free(&world);
}

/* Its file has the lines; where it is not here, the name that came with the sample stays. */
static void kernel_frames_get_lines_from_vmlinux(void **state)
{
	const struct program *program = *state;
	struct strbuf out = { 0 };
	struct world world;
	struct tree *tree;

	world_init(&world, 1);
	world_report(&world.tables[0], world_series(&world.tables[0], WORLD_ON_CPU, 1, ""), 0, 1);
	for (int i = 0; i < 2; i++) {
		struct tables *tables = &world.tables[0];
		const struct frame frame = {
			.kind = FRAME_KERNEL,
			.address = program->spot,
			.mapping_file = tables_string(tables, SLICE_LITERAL("[kernel]")),
			.build_id = tables_string(tables, slice_of(i ? "bb00" : BUILD_ID)),
			.function = tables_string(tables, SLICE_LITERAL("by_kallsyms")),
		};
		uint32_t id = tables_frame(tables, &frame);

		add_stack(&world, &id, 1, 1);
	}
	resolver_offer_program(program);
	tree = ask(&world, program->resolver);
	render_folded(tree, &out);
	assert_string_equal(strbuf_text(&out), "by_kallsyms 1\nouter;inner 1\n");
	assert_int_equal(tree->unresolved_count, 0);
	strbuf_free(&out);
	tree_free(tree);
	world_free(&world);
}

/* Each stack counts once, under each reason and in the sum, however many such frames it has. */
static void what_stays_an_address_says_why(void **state)
{
	const struct program *program = *state;
	struct frame anonymous = { .kind = FRAME_NATIVE };
	struct strbuf out = { 0 };
	struct world world;
	struct tree *tree;
	uint32_t frames[4];

	world_init(&world, 1);
	world_report(&world.tables[0], world_series(&world.tables[0], WORLD_ON_CPU, 1, ""), 0, 1);
	anonymous.mapping_file = tables_string(&world.tables[0], SLICE_LITERAL("[anon]"));
	frames[0] = native(&world.tables[0], program, program->main, BUILD_ID);
	frames[1] = native(&world.tables[0], program, 0x1234, "bb00");
	frames[2] = native(&world.tables[0], program, 0x1238, "bb00");
	frames[3] = tables_frame(&world.tables[0], &anonymous);
	add_stack(&world, frames, 1, 5);
	add_stack(&world, frames, 3, 2);
	add_stack(&world, frames, 4, 1);
	frames[1] = native(&world.tables[0], program, 1ull << 40, BUILD_ID);
	add_stack(&world, frames, 2, 2);
	tree = ask(&world, program->resolver);
	assert_int_equal(tree->total, 10);
	assert_int_equal(tree->unresolved_value, 5);
	assert_int_equal(tree->unresolved_count, 3);
	assert_string_equal(tree->unresolved[0].code, "no_file");
	assert_int_equal(tree->unresolved[0].value, 3);
	assert_string_equal(tree->unresolved[1].code, "outside_file");
	assert_int_equal(tree->unresolved[1].value, 2);
	assert_string_equal(tree->unresolved[2].code, "generated");
	assert_int_equal(tree->unresolved[2].value, 1);
	render_unresolved_text(tree, &out);
	assert_non_null(strstr(strbuf_text(&out), "some frame unnamed 50.00% of samples:\n"));
	assert_non_null(strstr(strbuf_text(&out), "no debuginfo for build id bb00: run `firn "
						  "debuginfo upload /tmp/firn-symbols-"));
	strbuf_free(&out);
	tree_free(tree);
	world_free(&world);
}

/* Samples without any stack end in no frame, named or not: in each of the ways to sum. */
static void samples_without_a_stack_end_in_no_frame(void **state)
{
	static const struct query_params ways[] = {
		{ .to_ns = 1 },
		{ .to_ns = 1, .rows_only = true, .rows_limit = 5 },
		{ .to_ns = 1, .nodes_only = true, .width_px = 1000 },
	};
	const struct program *program = *state;
	struct world world;
	uint32_t frame;

	world_init(&world, 1);
	world_report(&world.tables[0], world_series(&world.tables[0], WORLD_ON_CPU, 1, ""), 0, 1);
	add_stack(&world, NULL, 0, 4);
	for (int with_frame = 0; with_frame < 2; with_frame++) {
		if (with_frame) {
			frame = native(&world.tables[0], program, 0x1234, "bb00");
			add_stack(&world, &frame, 1, 2);
		}
		for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
			struct query_params params = ways[i];
			struct err err;
			struct tree *tree;

			assert_int_equal(world_ask(&world, WORLD_ON_CPU, &params, &tree, &err), 0);
			assert_int_equal(tree->total, with_frame ? 6 : 4);
			assert_int_equal(tree->unresolved_leaf, with_frame ? 2 : 0);
			assert_int_equal(tree->unresolved_value, with_frame ? 2 : 0);
			tree_free(tree);
		}
	}
	world_free(&world);
}

/* The table of so many functions, as a terminal shows it; by indexes if there are some. */
static char *table_of(const struct query_source *source, uint32_t limit, uint64_t *indexes_used)
{
	struct query_params params = { .to_ns = 1, .rows_only = true, .rows_limit = limit };
	struct strbuf text = { 0 };
	struct selector selector;
	struct tree *tree;

	assert_int_equal(selector_parse(slice_of(WORLD_ON_CPU), &selector, NULL), 0);
	params.selector = &selector;
	assert_int_equal(query_tree(source, &params, &tree, NULL), 0);
	render_top(tree, limit, &text);
	if (tree->unresolved_count)
		render_unresolved_text(tree, &text);
	*indexes_used += tree->stats.indexes_used;
	strbuf_reserve(&text, 1)[0] = '\0';
	selector_free(&selector);
	tree_free(tree);
	return text.data;
}

/* Asked for often enough to be indexed; of the last answer, whether it has the text. */
static bool tables_have(const struct query_source *source, const char *wanted)
{
	uint64_t used = 0;
	bool has = false;

	for (uint32_t round = 0; round < 8; round++) {
		struct query_source without = *source;
		char *expected, *table = table_of(source, 1 + round % 4, &used);

		without.indexes = NULL;
		expected = table_of(&without, 1 + round % 4, &used);
		assert_string_equal(table, expected);
		has = strstr(table, wanted);
		free(expected);
		free(table);
	}
	/* All but the first time, and once more where a symbol table came only then. */
	assert_in_range(used, 6, 7);
	return has;
}

/* An index has names, chains of inlined calls, and reasons; it goes when better symbols come. */
static void indexes_have_the_names_of_now(void **state)
{
	const struct resolver_options options = { 0 };
	struct program program = **(struct program **)state;
	struct index_cache *indexes = index_cache_new(INDEX_CACHE_BYTES_DEFAULT);
	struct query_source source;
	struct coded *coded;
	struct world world;
	uint32_t frames[4];

	assert_int_equal(resolver_new(&options, &program.resolver, NULL), 0);
	world_init(&world, 1);
	world_report(&world.tables[0], world_series(&world.tables[0], WORLD_ON_CPU, 1, ""), 0, 1);
	frames[0] = native(&world.tables[0], &program, program.main, BUILD_ID);
	frames[1] = native(&world.tables[0], &program, program.spot, BUILD_ID);
	frames[2] = native(&world.tables[0], &program, program.put, BUILD_ID);
	frames[3] = native(&world.tables[0], &program, 0x1234, "bb00");
	add_stack(&world, frames, 1, 1);
	add_stack(&world, frames, 2, 5);
	add_stack(&world, frames, 4, 3);
	add_stack(&world, frames + 1, 1, 2);
	add_stack(&world, frames + 2, 1, 4);
	coded = coded_new(&world, "comm");
	source = coded_source(coded, &(struct coded_wanted){ 0, 1, false, false });
	source.resolver = program.resolver;
	source.indexes = indexes;
	assert_false(tables_have(&source, "(inline)"));
	resolver_offer_program(&program);
	assert_true(tables_have(&source, "inner (inline)"));
	coded_free(coded);
	world_free(&world);
	index_cache_free(indexes);
	resolver_free(program.resolver);
}

/* Where the worker, a child of the test, stands still until who holds the other end closes it. */
static void fifo_of(pid_t parent, char path[static 64])
{
	snprintf(path, 64, "/tmp/firn-symbols-%ld.fifo", (long)parent);
}

static void stand_still(void)
{
	char path[64], byte;
	int fd;

	fifo_of(getppid(), path);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return;
	while (read(fd, &byte, 1) > 0)
		;
	close(fd);
}

struct asking {
	const struct query_source *source;
	struct query_params params;
	_Atomic bool *leave; /* set once the worker stands still; may be NULL */
	struct err err;
	int64_t total;
	uint64_t pending;
	int rc;
};

static void *ask_in_thread(void *context)
{
	struct asking *asking = context;
	struct tree *tree = NULL;

	asking->rc = query_tree(asking->source, &asking->params, &tree, &asking->err);
	if (!asking->rc) {
		asking->total = tree->total;
		asking->pending = tree->names_pending;
	}
	tree_free(tree);
	return NULL;
}

static void make_fifo(char path[static 64])
{
	fifo_of(getpid(), path);
	assert_int_equal(mkfifo(path, 0600), 0);
}

/* There is a reader once the worker has begun; it stands still until the result is closed. */
static int await_worker(const char *path)
{
	int fd;

	while ((fd = open(path, O_WRONLY | O_NONBLOCK)) < 0)
		sched_yield();
	unlink(path);
	return fd;
}

/* Asks on a thread, of symbols whose worker stands still until `*ret_fd` is closed. */
static void ask_a_stuck_worker(struct asking *asking, const struct program *program,
			       struct world *world, struct resolver **ret_resolver, int *ret_fd)
{
	const struct resolver_options options = { .local_files = true };
	struct query_source source;
	struct selector selector;
	pthread_t thread;
	char path[64];

	make_fifo(path);
	assert_int_equal(resolver_new(&options, ret_resolver, NULL), 0);
	world_init(world, 1);
	world_report(&world->tables[0], world_series(&world->tables[0], WORLD_ON_CPU, 1, ""), 0, 1);
	add_stack(world, &(uint32_t){ native(&world->tables[0], program, program->spot, BUILD_ID) },
		  1, 1);
	source = world_source(world);
	source.resolver = *ret_resolver;
	asking->source = &source;
	asking->params.to_ns = 1;
	assert_int_equal(selector_parse(slice_of(WORLD_ON_CPU), &selector, NULL), 0);
	asking->params.selector = &selector;
	assert_int_equal(pthread_create(&thread, NULL, ask_in_thread, asking), 0);
	*ret_fd = await_worker(path);
	if (asking->leave)
		atomic_store(asking->leave, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	selector_free(&selector);
}

static void who_waits_for_symbols_can_leave(void **state)
{
	_Atomic bool cancelled = false;
	struct asking asking = { .leave = &cancelled };
	struct resolver *resolver;
	struct world world;
	int fd;

	asking.params.limits.cancelled = &cancelled;
	ask_a_stuck_worker(&asking, *state, &world, &resolver, &fd);
	assert_int_equal(asking.rc, -ERR_CANCELLED);
	close(fd);
	world_free(&world);
	resolver_free(resolver);
}

/* The worker never answers: without the limit these would wait for ever. */
static void who_gives_names_up_has_the_rest(void **state)
{
	int64_t now_ns = clock_monotonic_ns();
	const struct query_limits limits[] = {
		{ .names_give_up_at_ns = now_ns + CLOCK_NS_PER_S },
		{ .names_until_ns = now_ns + CLOCK_NS_PER_S },
		{ .names_give_up_at_ns = now_ns },
		{ .names_until_ns = now_ns },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct asking asking = { .params.limits = limits[i] };
		struct resolver *resolver;
		struct world world;
		int fd;

		ask_a_stuck_worker(&asking, *state, &world, &resolver, &fd);
		assert_int_equal(asking.rc, 0);
		assert_int_equal(asking.total, 1);
		assert_int_equal(asking.pending, 1);
		close(fd);
		world_free(&world);
		resolver_free(resolver);
	}
}

static bool is_left(void *context)
{
	return atomic_load((_Atomic bool *)context);
}

/* The same of who says so while it waits. */
static void who_leaves_names_has_the_rest(void **state)
{
	_Atomic bool left = false;
	struct asking asking = { .leave = &left };
	struct resolver *resolver;
	struct world world;
	int fd;

	asking.params.limits.leave_names = is_left;
	asking.params.limits.leave_context = &left;
	ask_a_stuck_worker(&asking, *state, &world, &resolver, &fd);
	assert_int_equal(asking.rc, 0);
	assert_int_equal(asking.total, 1);
	assert_int_equal(asking.pending, 1);
	close(fd);
	world_free(&world);
	resolver_free(resolver);
}

static bool is_left_at_the_tenth_look(void *context)
{
	return ++*(unsigned *)context >= 10;
}

/* Looks are 50 ms apart, also while there are symbols already and better ones are read. */
static void who_waits_for_better_symbols_sleeps(void **state)
{
	const struct resolver_options options = { 0 };
	struct program program = **(struct program **)state;
	struct query_params params = { .to_ns = 1 };
	struct program stripped = program;
	struct query_source source;
	struct selector selector;
	char command[192], path[64];
	struct world world;
	struct tree *tree;
	unsigned looks = 0;
	int64_t since_ns;

	snprintf(stripped.path, sizeof(stripped.path), "%s/stripped", program.folder);
	snprintf(command, sizeof(command), "strip -o %s %s", stripped.path, program.path);
	assert_int_equal(system(command), 0);
	assert_int_equal(resolver_new(&options, &stripped.resolver, NULL), 0);
	program.resolver = stripped.resolver;
	resolver_offer_program(&stripped);
	unlink(stripped.path);
	world_init(&world, 1);
	world_report(&world.tables[0], world_series(&world.tables[0], WORLD_ON_CPU, 1, ""), 0, 1);
	add_stack(&world, &(uint32_t){ native(&world.tables[0], &program, program.spot, BUILD_ID) },
		  1, 1);
	tree_free(ask(&world, program.resolver));
	make_fifo(path);
	resolver_offer_program(&program);
	source = world_source(&world);
	source.resolver = program.resolver;
	assert_int_equal(selector_parse(slice_of(WORLD_ON_CPU), &selector, NULL), 0);
	params.selector = &selector;
	params.limits.leave_names = is_left_at_the_tenth_look;
	params.limits.leave_context = &looks;
	since_ns = clock_monotonic_ns();
	assert_int_equal(query_tree(&source, &params, &tree, NULL), 0);
	assert_int_equal(looks, 10);
	assert_true(clock_monotonic_ns() - since_ns >= 400 * CLOCK_NS_PER_MS);
	close(await_worker(path));
	tree_free(tree);
	selector_free(&selector);
	world_free(&world);
	resolver_free(program.resolver);
}

struct opening {
	struct resolver *resolver;
	struct query_symbols_of of;
	struct query_limits limits;
	struct resolver_symbols symbols;
	int rc;
};

static void *open_in_thread(void *context)
{
	struct opening *opening = context;

	opening->rc = query_open_symbols(opening->resolver, &opening->of, &opening->limits,
					 &opening->symbols, NULL);
	return NULL;
}

/* And of who opens them when the tree is made. */
static void who_opens_symbols_can_leave(void **state)
{
	const struct resolver_options options = { .local_files = true };
	const struct program *program = *state;
	_Atomic bool cancelled = false;
	struct opening opening = { .of.build_id = SLICE_LITERAL(BUILD_ID),
				   .of.mapping = slice_of(program->path),
				   .of.until_ns = clock_monotonic_ns() + 30 * CLOCK_NS_PER_S,
				   .limits.cancelled = &cancelled };
	pthread_t thread;
	char path[64];
	int fd;

	make_fifo(path);
	assert_int_equal(resolver_new(&options, &opening.resolver, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, open_in_thread, &opening), 0);
	fd = await_worker(path);
	atomic_store(&cancelled, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(clock_monotonic_ns() < opening.of.until_ns);
	assert_int_equal(opening.rc, -ERR_CANCELLED);
	assert_int_equal(opening.symbols.reason, RESOLVE_PENDING);
	resolver_close(opening.resolver, &opening.symbols);
	close(fd);
	resolver_free(opening.resolver);
}

int main(int argc, char **argv)
{
	int worker;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_shown_as_asked),
		cmocka_unit_test(what_stays_an_address_says_why),
		cmocka_unit_test(samples_without_a_stack_end_in_no_frame),
		cmocka_unit_test(kernel_frames_get_lines_from_vmlinux),
		cmocka_unit_test(unnamed_frames_get_their_inline_chain),
		cmocka_unit_test(frames_of_another_build_stay_addresses),
		cmocka_unit_test(indexes_have_the_names_of_now),
		cmocka_unit_test(who_waits_for_symbols_can_leave),
		cmocka_unit_test(who_gives_names_up_has_the_rest),
		cmocka_unit_test(who_leaves_names_has_the_rest),
		cmocka_unit_test(who_opens_symbols_can_leave),
		cmocka_unit_test(who_waits_for_better_symbols_sleeps),
	};

	stand_still();
	worker = symbol_worker_main(argc, argv); /* it builds tables in a process of its own */
	if (worker >= 0)
		return worker;
	return cmocka_run_group_tests(tests, set_up, tear_down);
}

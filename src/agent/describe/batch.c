/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/batch.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/describe/greenlet.h"
#include "agent/describe/labels.h"
#include "agent/describe/perl_loops.h"
#include "agent/describe/recent_frames.h"
#include "agent/describe/script_frames.h"
#include "agent/describe/text.h"
#include "agent/describe/vdso.h"
#include "agent/runtime/splice.h"
#include "base/mem.h"
#include "base/metrics.h"

#define MODULE_BYTES_MAX 80

/* Frames at the root of cut stacks, by enum stack_end; NULL = not cut, or not known to be. */
static const char *const end_markers[STACK_ENDS] = {
	[STACK_NO_UNWIND_INFO] = "[truncated: no unwind info]",
	[STACK_TABLE_PENDING] = "[truncated: unwind table not loaded yet]",
	[STACK_UNSUPPORTED_RULE] = "[truncated: unsupported unwind info]",
	[STACK_NO_FRAME_POINTER] = "[truncated: no frame pointer]",
	[STACK_BAD_ADDRESS] = "[truncated: bad return address]",
	[STACK_UNREADABLE] = "[truncated: unreadable stack]",
	[STACK_TOO_DEEP] = "[truncated: too deep]",
	[STACK_32_BIT] = "[truncated: 32-bit process]",
	[STACK_NO_USER_REGISTERS] = "[truncated: no user registers]",
	[STACK_TABLE_FAILED] = "[truncated: no table: it cannot be built]",
	[STACK_TABLE_NO_ROOM] = "[truncated: no table: no room for it]",
	[STACK_NO_MAPPINGS] = "[truncated: mappings were changing]",
	[STACK_GUESSED_POINTER] = "[guess: frame pointer]",
};

struct line {
	uint32_t series, node;
	uint32_t label_set;   /* of the samples */
	uint32_t newest_time; /* counts.h */
	uint64_t samples;
};

struct builder {
	struct tables *tables;
	const struct batch_window *window;
	uint32_t group;
	uint32_t anonymous;	  /* frame */
	uint32_t *process_labels; /* by tracker index; TABLES_FULL = not yet made */
	struct moment *moments;	  /* of the report at hand: room for all times of the window */
	uint32_t moments_count;
	struct recent_frames *recent;
	uint64_t kept[2 * (SCRIPT_FRAMES_MAX + 1)]; /* words of the stack at hand: see keep_jsc */
};

static METRIC_COUNTER(samples_left_out, "firn_agent_left_out_samples_total", "",
		      "Samples of processes that a rule of the configuration leaves out.");

void batch_metrics_register(void)
{
	static struct metric *const own[] = { &samples_left_out };

	metrics_register(own, 1);
}

uint64_t batch_left_out_samples(void)
{
	return (uint64_t)metric_get(&samples_left_out);
}

static uint32_t string(struct builder *builder, const char *text)
{
	return tables_string(builder->tables, slice_of(text));
}

static uint32_t named_frame(struct builder *builder, enum frame_kind kind, uint32_t mapping,
			    struct slice function)
{
	struct frame frame = {
		.kind = kind,
		.mapping_file = mapping,
		.function = tables_string(builder->tables, function),
	};

	return tables_frame(builder->tables, &frame);
}

static bool has_lines(const struct batch_window *window)
{
	return window->kernel_image && window->kernel_image->fd >= 0 &&
	       window->kernel_symbols->text_address;
}

/* Without lines to tell apart, all addresses of a function would be as many equal frames. */
static uint32_t kernel_frame_with_lines(struct builder *builder, uint64_t address,
					struct slice name)
{
	const struct kernel_image *image = builder->window->kernel_image;
	struct frame frame = {
		.kind = FRAME_KERNEL,
		.mapping_file = string(builder, "[kernel]"),
		.build_id = string(builder, image->build_id),
		.address = address - builder->window->kernel_symbols->text_address +
			   image->text_address,
		.function = tables_string(builder->tables, name),
	};

	return tables_frame(builder->tables, &frame);
}

static uint32_t kernel_frame(struct builder *builder, uint64_t address)
{
	struct slice name, module;
	char text[MODULE_BYTES_MAX];

	if (!kernel_symbols_find(builder->window->kernel_symbols, address, &name, &module)) {
		struct frame frame = { .kind = FRAME_KERNEL,
				       .mapping_file = string(builder, "[kernel]"),
				       .address = address };

		return tables_frame(builder->tables, &frame);
	}
	if (!module.len && has_lines(builder->window))
		return kernel_frame_with_lines(builder, address, name);
	snprintf(text, sizeof(text), "[%.*s]", SLICE_FMT(module));
	return named_frame(builder, FRAME_KERNEL, string(builder, module.len ? text : "[kernel]"),
			   name);
}

static uint32_t vdso_frame(struct builder *builder, uint64_t offset)
{
	struct slice function = vdso_function(offset);
	struct frame frame = { .kind = FRAME_NATIVE,
			       .mapping_file = string(builder, "[vdso]"),
			       .build_id = string(builder, vdso_build_id()),
			       .function = tables_string(builder->tables, function),
			       .address = function.len ? 0 : offset };

	return tables_frame(builder->tables, &frame);
}

static uint32_t file_frame(struct builder *builder, const struct binary *binary, uint64_t offset)
{
	struct frame frame = { .kind = script_kind_of(binary), .address = offset };

	frame.mapping_file = binary && binary->path
				     ? text_intern(builder->tables, slice_of(binary->path))
				     : string(builder, "[unknown file]");
	if (binary && binary->elf)
		frame.build_id = string(builder, binary->elf->build_id);
	if (!binary || !binary->elf || !elf_offset_to_address(binary->elf, offset, &frame.address))
		frame.flags = FRAME_ADDR_OFFSET;
	return tables_frame(builder->tables, &frame);
}

/* The user half of a stack. */
struct user_half {
	const struct process *process;
	const struct space *space;
	const struct counted *stack;
	const uint64_t *addresses, *script;
	size_t script_count;		    /* frames of the interpreter, two words each */
	uint32_t frames[SAMPLE_FRAMES_MAX]; /* SCRIPT_NO_FRAME = to be made */
	bool loops[SAMPLE_FRAMES_MAX];
	uint8_t natives[SAMPLE_FRAMES_MAX]; /* enum splice_native */
	bool is_problem_told;
	struct splice_step steps[SPLICE_STEPS_MAX];
};

static struct recent_place native_place(const struct user_half *half, size_t index)
{
	return (struct recent_place){ half->space, { half->addresses[index] } };
}

/*
 * CPython makes a piece of code for each function, for perf (-X perf), which calls the loop: where
 * the loop's own frames are known, it says nothing more.
 */
static bool is_trampoline(const struct user_half *half, const struct code_name *name)
{
	return name->kind == FRAME_PYTHON && half->stack->script_kind == SCRIPT_PYTHON &&
	       half->script_count;
}

/*
 * Code in no file, or in a file that is no ELF: the process made it. SCRIPT_NO_FRAME = it is left
 * out.
 */
static uint32_t generated_frame(struct builder *builder, const struct user_half *half,
				uint64_t address)
{
	struct jit *jit = builder->window->jit;
	struct code_name name;
	struct slice raw;
	struct frame frame;

	if (!jit || !jit_find(jit, &half->process->identity, address, &name, &raw))
		return builder->anonymous;
	if (is_trampoline(half, &name))
		return SCRIPT_NO_FRAME;
	frame = (struct frame){
		.kind = name.kind,
		.mapping_file = string(builder, name.kind == FRAME_WASM ? "[wasm]" : "[jit]"),
		.function = text_intern(builder->tables, name.function),
		.file = text_intern(builder->tables, name.file),
		.start_line = name.line,
	};
	if (!slice_equal(raw, name.function))
		frame.system_name = text_intern(builder->tables, raw);
	return tables_frame(builder->tables, &frame);
}

static uint32_t user_frame(struct builder *builder, const struct user_half *half, size_t index)
{
	const struct process *process = half->process;
	uint64_t address = half->addresses[index], offset;
	const struct mapping *mapping;
	uint32_t frame;

	if (half->frames[index] != SCRIPT_NO_FRAME)
		return half->frames[index];
	mapping = space_find(half->space, address);
	offset = mapping ? address - mapping->start + mapping->offset : 0;
	if (mapping && mapping->kind == MAPPING_VDSO)
		return vdso_frame(builder, offset);
	if (mapping_is_elf(mapping, address)) {
		const struct recent_place place = native_place(half, index);

		frame = file_frame(builder, mapping->binary, offset);
		/* half->loops has what the stack makes of it. */
		recent_frames_put(builder->recent, &place, frame, script_is_loop(mapping, address));
		return frame;
	}
	frame = builder->window->runtimes
			? script_code_frame(builder->tables, builder->window->runtimes,
					    &process->identity, address)
			: SCRIPT_NO_FRAME;
	if (frame != SCRIPT_NO_FRAME)
		return frame;
	if (mapping_is_generated(mapping))
		return generated_frame(builder, half, address);
	return file_frame(builder, mapping->binary, offset);
}

static uint32_t add_frame(struct builder *builder, uint32_t node, uint32_t frame)
{
	node = tables_node(builder->tables, node, frame);
	assert(node != TABLES_FULL); /* counts are bounded far below */
	return node;
}

static bool is_complete(const struct counted *stack)
{
	return stack->user_end == STACK_COMPLETE || stack->user_end == STACK_GUESSED_POINTER;
}

static void fit_perl(struct user_half *half)
{
	size_t count = half->stack->user_count;

	perl_loops_fit(half->space, half->addresses, count, half->loops);
	half->script_count =
		perl_loops_frames(half->space, half->addresses, count, is_complete(half->stack),
				  half->script, half->script_count);
}

static bool has_code_in_loop(const struct counted *stack)
{
	return stack->script_kind == SCRIPT_PHP || stack->script_kind == SCRIPT_LUA;
}

static struct user_half user_half_of(const struct builder *builder, const struct counted *stack)
{
	const struct tracker *tracker = builder->window->tracker;
	struct user_half half = {
		.process = tracker_process(tracker, stack->process),
		.space = tracker_space(tracker, stack->process, stack->space),
		.stack = stack,
		.addresses = counts_user_frames(builder->window->counts, stack),
		.script = counts_script_words(builder->window->counts, stack),
		.script_count = stack->script_words / 2,
	};
	const struct mapping *mapping = NULL;

	for (size_t i = 0; i < stack->user_count; i++) {
		const struct recent_place place = native_place(&half, i);

		if (recent_frames_find(builder->recent, &place, &half.frames[i], &half.loops[i]))
			continue;
		half.frames[i] = SCRIPT_NO_FRAME;
		mapping = space_find_near(half.space, mapping, half.addresses[i]);
		/* Code that PHP's and LuaJIT's compilers made runs in the loop's own frame. */
		half.loops[i] = has_code_in_loop(stack) && mapping_is_generated(mapping)
					? true
					: script_is_loop(mapping, half.addresses[i]);
	}
	if (stack->script_kind == SCRIPT_PERL)
		fit_perl(&half);
	return half;
}

/* Before the first frame of generated code without a name, whose runtime we cannot read. */
static uint32_t add_problem(struct builder *builder, uint32_t node, struct user_half *half)
{
	const struct runtime_file *file =
		half->is_problem_told ? NULL : script_problem_of(half->space);

	half->is_problem_told = true;
	return file ? add_frame(builder, node, script_problem_frame(builder->tables, file)) : node;
}

static uint32_t add_native(struct builder *builder, uint32_t node, struct user_half *half,
			   size_t index)
{
	uint64_t address = half->addresses[index];
	uint32_t frame = user_frame(builder, half, index);
	const struct runtime_file *file;

	if (frame == builder->anonymous &&
	    (half->stack->script_kind == SCRIPT_RUBY || has_code_in_loop(half->stack)))
		frame = script_compiled_frame(builder->tables,
					      (enum script_kind)half->stack->script_kind);
	else if (frame == builder->anonymous)
		node = add_problem(builder, node, half);
	if (frame != SCRIPT_NO_FRAME)
		node = add_frame(builder, node, frame);
	if (!half->loops[index])
		return node;
	if (half->stack->script_kind == SCRIPT_PUC && !half->script_count)
		node = add_frame(builder, node, script_unread_frame(builder->tables, SCRIPT_PUC));
	file = script_runtime_of(space_find(half->space, address));
	if (file && file->problem)
		node = add_frame(builder, node, script_problem_frame(builder->tables, file));
	return node;
}

/* With the functions that are inlined into it; false = nothing is known of it but its own one. */
static bool add_v8_place(struct builder *builder, uint32_t *node, const struct user_half *half,
			 const uint64_t *words)
{
	size_t native = words[0] >> SCRIPT_PLACE_SHIFT, count;
	uint32_t frames[SCRIPT_V8_FRAMES_MAX];

	if (half->stack->script_kind != SCRIPT_V8 || half->natives[native] != SPLICE_GENERATED)
		return false;
	count = script_v8_frames(builder->tables, builder->window->runtimes,
				 &half->process->identity, words, half->addresses[native],
				 builder->recent, frames);
	for (size_t i = 0; i < count; i++)
		*node = add_frame(builder, *node, frames[i]);
	return count > 0;
}

static uint32_t add_lua(struct builder *builder, uint32_t node, const struct user_half *half,
			const uint64_t *words, const uint64_t *outer)
{
	uint32_t frames[SCRIPT_LUA_FRAMES_MAX];
	size_t count = script_lua_frames(builder->tables, builder->window->runtimes,
					 &half->process->identity, words, outer, frames);

	for (size_t i = 0; i < count; i++)
		node = add_frame(builder, node, frames[i]);
	return node;
}

/* What the native frame calls that the script's frame `index` belongs to. */
static enum script_inside inside_of(const struct user_half *half, size_t index)
{
	size_t native = half->script[2 * index] >> SCRIPT_PLACE_SHIFT;

	if (!native)
		return SCRIPT_INSIDE_NOTHING;
	if (half->natives[native - 1] == SPLICE_GENERATED ||
	    (index && half->script[2 * index - 2] >> SCRIPT_PLACE_SHIFT == native - 1))
		return SCRIPT_INSIDE_CODE;
	return SCRIPT_INSIDE_NATIVE;
}

static uint32_t add_jsc(struct builder *builder, uint32_t node, struct user_half *half,
			size_t index)
{
	const uint64_t *words = half->script + 2 * index;
	size_t native = words[0] >> SCRIPT_PLACE_SHIFT, count;
	uint32_t frames[SCRIPT_JSC_FRAMES_MAX];

	count = script_jsc_frames(builder->tables, builder->window->runtimes,
				  &half->process->identity, words, inside_of(half, index), frames);
	for (size_t i = 0; i < count; i++)
		node = add_frame(builder, node, frames[i]);
	if (!count && half->natives[native] == SPLICE_GENERATED)
		node = add_native(builder, node, half, native);
	return node;
}

static uint32_t add_script(struct builder *builder, uint32_t node, struct user_half *half,
			   size_t index)
{
	const uint64_t *words = half->script + 2 * index;
	const uint64_t *outer = 2 * index + 2 < half->stack->script_words ? words + 2 : NULL;
	size_t native = words[0] >> SCRIPT_PLACE_SHIFT;
	uint32_t frame;

	if (half->stack->script_kind == SCRIPT_LUA)
		return add_lua(builder, node, half, words, outer);
	if (half->stack->script_kind == SCRIPT_JSC)
		return add_jsc(builder, node, half, index);
	if (add_v8_place(builder, &node, half, words))
		return node;
	frame = script_frame_of(
		builder->tables, builder->window->runtimes, &half->process->identity,
		(enum script_kind)half->stack->script_kind, words, outer, builder->recent);
	if (frame != SCRIPT_NO_FRAME)
		return add_frame(builder, node, frame);
	return half->natives[native] == SPLICE_GENERATED ? add_native(builder, node, half, native)
							 : node;
}

/* Of Python and PHP alone: loops of others may have no function of their own. */
static uint32_t add_gap(struct builder *builder, uint32_t node, const struct counted *stack)
{
	enum script_kind kind = (enum script_kind)stack->script_kind;

	if (kind != SCRIPT_PYTHON && kind != SCRIPT_PHP)
		return node;
	return add_frame(builder, node, script_gap_frame(builder->tables, kind));
}

/*
 * Native code has a function's frame only where it is JavaScriptCore's interpreter: elsewhere the
 * words are an older frame's (jsc_code.h).
 */
static void keep_jsc(struct builder *builder, struct user_half *half)
{
	const struct runtimes *runtimes = builder->window->runtimes;
	const struct process_identity *identity = &half->process->identity;
	const struct jsc_code *any = NULL;
	size_t count = 0;

	for (size_t i = 0; i < half->script_count && !any; i++)
		any = script_jsc_code(runtimes, identity, half->script + 2 * i);
	for (size_t i = 0; i < half->script_count; i++) {
		const uint64_t *words = half->script + 2 * i;
		size_t native = words[0] >> SCRIPT_PLACE_SHIFT;
		uint64_t address;

		if (native >= half->stack->user_count)
			continue;
		address = half->addresses[native];
		if (any && half->natives[native] == SPLICE_RUNTIME &&
		    (address < any->interpreter_start || address >= any->interpreter_end))
			continue;
		builder->kept[2 * count] = words[0];
		builder->kept[2 * count++ + 1] = words[1];
	}
	half->script = builder->kept;
	half->script_count = count;
}

static size_t splice_half(struct builder *builder, struct user_half *half)
{
	const struct counted *stack = half->stack;
	struct splice_natives natives = {
		.loops = half->loops,
		.count = stack->user_count,
		.inside = stack->user_count,
		.is_complete = is_complete(stack),
	};

	if (stack->script_kind == SCRIPT_PYTHON)
		natives.inside = greenlet_frames(half->space, half->addresses, stack->user_count,
						 half->loops);
	if (stack->script_kind != SCRIPT_V8 && stack->script_kind != SCRIPT_JSC)
		return splice_frames(&natives, half->script, half->script_count, half->steps);
	for (size_t i = 0; i < stack->user_count; i++)
		half->natives[i] = script_native_of(half->space, half->addresses[i]);
	if (stack->script_kind == SCRIPT_JSC)
		keep_jsc(builder, half);
	return splice_places(half->natives, stack->user_count, half->script, half->script_count,
			     half->steps);
}

/* A Java runtime's stacks have words for each frame of generated code that identify it. */
static uint32_t add_java_half(struct builder *builder, uint32_t node, struct user_half *half)
{
	const struct runtimes *runtimes = builder->window->runtimes;
	const struct process_identity *identity = &half->process->identity;
	size_t noted = half->stack->script_words / 2, inside = 0;
	uint32_t frames[JAVA_INLINED_MAX];

	for (size_t i = 0; i < half->stack->user_count; i++)
		inside += runtimes_is_noted(runtimes, identity, half->addresses[i]);
	for (size_t i = half->stack->user_count; i-- > 0;) {
		size_t count;

		if (!runtimes_is_noted(runtimes, identity, half->addresses[i]) ||
		    inside-- > noted) {
			node = add_native(builder, node, half, i);
			continue;
		}
		count = script_java_frames(builder->tables, runtimes, identity,
					   half->script + 2 * inside, frames);
		while (count-- > 0)
			node = add_frame(builder, node, frames[count]);
	}
	return node;
}

/* With the frames of an interpreter between the native ones. */
static uint32_t add_user_half(struct builder *builder, uint32_t node, const struct counted *stack)
{
	struct user_half half = user_half_of(builder, stack);
	size_t count;

	if (stack->script_kind == SCRIPT_HOTSPOT && builder->window->runtimes)
		return add_java_half(builder, node, &half);
	count = splice_half(builder, &half);

	for (size_t i = 0; i < count; i++) {
		size_t index = half.steps[i].index;

		if (half.steps[i].is_gap)
			node = add_gap(builder, node, stack);
		else
			node = half.steps[i].is_native ? add_native(builder, node, &half, index)
						       : add_script(builder, node, &half, index);
	}
	return node;
}

/*
 * A fiber of PHP begins in code that has no unwind information: the walk is at its start when it
 * has come to all loops that the fiber runs.
 */
static bool is_whole_fiber(const struct builder *builder, const struct counted *stack)
{
	struct user_half half;
	size_t runs, loops = 0;

	if (stack->script_kind != SCRIPT_PHP || stack->user_end != STACK_NO_UNWIND_INFO)
		return false;
	half = user_half_of(builder, stack);
	for (size_t i = 0; i < stack->user_count; i++)
		loops += half.loops[i];
	runs = splice_runs_on_stack(half.script, stack->script_words / 2);
	return runs == loops || (loops && runs == loops - 1);
}

/* All of its code that is in no ELF file is known to keep the frame pointer. */
static bool is_no_guess(const struct builder *builder, const struct counted *stack)
{
	const struct tracker *tracker = builder->window->tracker;
	const struct space *space = tracker_space(tracker, stack->process, stack->space);
	const struct process *process = tracker_process(tracker, stack->process);
	const uint64_t *addresses = counts_user_frames(builder->window->counts, stack);
	const struct mapping *mapping = NULL;
	struct jit *jit = builder->window->jit;
	size_t keeping = 0;

	for (size_t i = 0; i < stack->user_count && jit; i++) {
		mapping = space_find_near(space, mapping, addresses[i]);
		if (mapping_is_elf(mapping, addresses[i]) ||
		    (mapping && mapping->kind == MAPPING_VDSO))
			continue;
		if (!jit_keeps_pointer(jit, &process->identity, addresses[i], i == 0))
			return false;
		keeping++;
	}
	return keeping;
}

static const char *marker_of(const struct builder *builder, const struct counted *stack)
{
	if (stack->user_end == STACK_GUESSED_POINTER &&
	    script_keeps_pointers(
		    tracker_space(builder->window->tracker, stack->process, stack->space)))
		return NULL;
	if (stack->user_end == STACK_GUESSED_POINTER && is_no_guess(builder, stack))
		return NULL;
	if (is_whole_fiber(builder, stack))
		return NULL;
	return end_markers[stack->user_end];
}

static uint32_t stack_node(struct builder *builder, const struct counted *stack)
{
	const uint64_t *kernel = counts_kernel_frames(builder->window->counts, stack);
	const char *marker = marker_of(builder, stack);
	uint32_t node = 0;

	if (marker)
		node = add_frame(builder, node,
				 named_frame(builder, FRAME_MARKER, 0, slice_of(marker)));
	node = add_user_half(builder, node, stack);
	/* All but the innermost are return addresses. */
	for (size_t i = stack->kernel_count; i-- > 0;)
		node = add_frame(builder, node, kernel_frame(builder, kernel[i] - (i > 0)));
	return node;
}

static uint32_t stack_series(struct builder *builder, const struct counted *stack)
{
	const struct batch_window *window = builder->window;
	const struct process *process = tracker_process(window->tracker, stack->process);
	uint32_t *labels = &builder->process_labels[stack->process];
	uint32_t label_set;

	if (window->thread_labels) {
		label_set = labels_of_process(builder->tables, &window->labels, process,
					      counts_name(window->counts, stack->thread_name));
	} else {
		if (*labels == TABLES_FULL)
			*labels = labels_of_process(builder->tables, &window->labels, process,
						    (struct slice){ 0 });
		label_set = *labels;
	}
	if (label_set == LABELS_DROPPED)
		return LABELS_DROPPED;
	return tables_series(builder->tables, label_set, builder->group);
}

static uint32_t sample_label_set(struct builder *builder, const struct counted *stack)
{
	const struct batch_window *window = builder->window;

	return sample_labels_of(builder->tables, window->sample_labels, window->counts, stack,
				tracker_process(window->tracker, stack->process));
}

static int by_series_and_row(const void *a, const void *b)
{
	const struct line *first = a, *second = b;

	if (first->series != second->series)
		return first->series < second->series ? -1 : 1;
	if (first->node != second->node)
		return first->node < second->node ? -1 : 1;
	return (first->label_set > second->label_set) - (first->label_set < second->label_set);
}

static int by_tick(const void *a, const void *b)
{
	const struct moment *first = a, *second = b;

	return (first->tick > second->tick) - (first->tick < second->tick);
}

/* The times of a row's lines. */
static void add_moments(struct builder *builder, const struct line *lines, size_t count,
			uint32_t row)
{
	const struct counts *counts = builder->window->counts;
	uint32_t first = builder->moments_count;

	for (size_t i = 0; i < count; i++)
		for (uint32_t at = lines[i].newest_time; at != COUNTS_NO_TIME;
		     at = counts_time(counts, at)->before)
			builder->moments[builder->moments_count++] =
				(struct moment){ row, counts_time(counts, at)->tick, 0 };
	qsort(builder->moments + first, builder->moments_count - first, sizeof(struct moment),
	      by_tick);
}

static void add_reports(struct builder *builder, const struct line *lines, size_t count)
{
	const struct batch_window *window = builder->window;

	for (size_t i = 0; i < count;) {
		uint32_t series = lines[i].series, row = 0;

		builder->moments_count = 0;
		tables_report_begin(builder->tables, series, window->start_ns, window->duration_ns,
				    window->batch_id);
		while (i < count && lines[i].series == series) {
			const struct line *line = &lines[i];
			int64_t samples = 0;
			size_t first = i;

			for (; i < count && !by_series_and_row(&lines[i], line); i++)
				samples += (int64_t)lines[i].samples;
			tables_row(builder->tables, line->node, line->label_set, &samples);
			add_moments(builder, &lines[first], i - first, row++);
		}
		tables_moments(builder->tables, builder->moments, builder->moments_count);
	}
}

static uint32_t on_cpu_group(struct builder *builder)
{
	struct group group = {
		.name = string(builder, "on_cpu"),
		.period_type = string(builder, "cpu"),
		.period_unit = string(builder, "nanoseconds"),
		.period = builder->window->period_ns,
		.column_count = 1,
	};
	struct column column = {
		.sample_type = string(builder, "samples"),
		.sample_unit = string(builder, "count"),
		.kind = COLUMN_DELTA,
	};

	return tables_group(builder->tables, &group, &column);
}

void batch_build(struct tables *tables, const struct batch_window *window)
{
	size_t count = window->counts->stacks.count, kept = 0;
	struct line *lines = mem_new_array(struct line, count + 1);
	struct builder builder = { .tables = tables, .window = window };

	builder.recent = mem_new(struct recent_frames);
	builder.group = on_cpu_group(&builder);
	builder.anonymous = named_frame(&builder, FRAME_NATIVE, string(&builder, "[anon]"),
					(struct slice){ 0 });
	builder.process_labels = mem_new_array(uint32_t, window->tracker->count + 1);
	memset(builder.process_labels, 0xff, window->tracker->count * sizeof(uint32_t));
	builder.moments = mem_new_array(struct moment, window->counts->times.count + 1);
	for (size_t i = 0; i < count; i++) {
		const struct counted *stack = counts_stack(window->counts, (uint32_t)i);

		uint32_t series = stack_series(&builder, stack);

		if (series == LABELS_DROPPED) {
			metric_add(&samples_left_out, (int64_t)stack->samples);
			continue;
		}
		lines[kept++] = (struct line){ series, stack_node(&builder, stack),
					       sample_label_set(&builder, stack),
					       stack->newest_time, stack->samples };
	}
	count = kept;
	qsort(lines, count, sizeof(*lines), by_series_and_row);
	add_reports(&builder, lines, count);
	free(builder.process_labels);
	free(builder.moments);
	free(builder.recent);
	free(lines);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scripts - puts the frames of a process's interpreter behind the native ones of the sample: by
 * one cursor for each language (script_*.h), which finds where to begin, and goes on from frame to
 * frame in a loop. Part of sample.bpf.c.
 */
#ifndef FIRN_AGENT_BPF_SCRIPTS_BPF_H
#define FIRN_AGENT_BPF_SCRIPTS_BPF_H

#define SCRIPT_STEPS 8 /* frames in one go: calls and returns cost as much as many a frame */
#define SCRIPT_GOES(frames) (((frames) + SCRIPT_STEPS - 1) / SCRIPT_STEPS)

/* For callbacks of bpf_loop: 1 after the last frame. */
static __always_inline long take_frames(struct scratch *scratch,
					bool (*step)(struct script *, struct sample *))
{
	WALK_KEEP_LOOP
	for (int i = 0; i < SCRIPT_STEPS; i++)
		if (!step(&scratch->script, sample_at_hand(scratch)))
			return 1;
	return 0;
}

/* bpf_loop callback. */
static long next_script_frames(__u32 index, void *data)
{
	(void)index;
	return take_frames(*(struct scratch **)data, script_frame);
}

/* bpf_loop callback. */
static long next_v8_frames(__u32 index, void *data)
{
	struct scratch *scratch = *(struct scratch **)data;

	return !script_v8_frames(&scratch->script, &scratch->walk, index * SCRIPT_V8_STEPS,
				 sample_at_hand(scratch));
}

/* bpf_loop callback. */
static long next_jsc_frame(__u32 index, void *data)
{
	struct scratch *scratch = *(struct scratch **)data;
	struct sample *sample = sample_at_hand(scratch);
	const struct walk_place *place =
		&scratch->walk.places[row_masked(index, WALK_PLACES_MAX - 1)];

	script_jsc_frame(&scratch->script, place->fp, place->at - sample->kernel_count, sample);
	return 0;
}

/* bpf_loop callback. */
static long next_ruby_frames(__u32 index, void *data)
{
	(void)index;
	return take_frames(*(struct scratch **)data, script_ruby_frame);
}

WALK_APART void take_ruby_frames(__u64 thread, struct scratch *scratch)
{
	if (script_ruby_start(&scratch->script, thread))
		bpf_loop(SCRIPT_GOES(2 * SCRIPT_FRAMES_MAX), next_ruby_frames, &scratch, 0);
}

/* bpf_loop callback. */
static long next_php_frames(__u32 index, void *data)
{
	(void)index;
	return take_frames(*(struct scratch **)data, script_php_frame);
}

/* Where the loop, if it was interrupted, is in its innermost frame. */
static __always_inline void take_php_position(struct scratch *scratch, const struct sample *sample)
{
	struct walk *walk = &scratch->walk;
	__u32 first = sample->kernel_count;
	__u64 frame;

	if (!sample->user_count || first >= SAMPLE_FRAMES_MAX ||
	    !script_php_is_loop(&scratch->script.process, sample->frames[first]) ||
	    !walk_interrupted(walk, PHP_REGISTER_FRAME, &frame) || frame != scratch->script.frame)
		return;
	if (!walk_interrupted(walk, PHP_REGISTER_POSITION, &scratch->script.limit))
		scratch->script.limit = 0;
}

/* It runs in the process's first thread. */
WALK_APART void take_php_frames(struct task_struct *task, struct scratch *scratch)
{
	if (task->pid != task->tgid || !script_php_start(&scratch->script))
		return;
	take_php_position(scratch, sample_at_hand(scratch));
	bpf_loop(SCRIPT_GOES(2 * SCRIPT_FRAMES_MAX), next_php_frames, &scratch, 0);
}

#define PERL_CONTEXTS_MAX (8 * SCRIPT_FRAMES_MAX) /* of which some are frames */

/* bpf_loop callback. */
static long next_perl_frame(__u32 index, void *data)
{
	struct scratch *scratch = *(struct scratch **)data;

	(void)index;
	return !script_perl_frame(&scratch->script, sample_at_hand(scratch));
}

/* Builds without threads run it in the process's first one. */
WALK_APART void take_perl_frames(struct task_struct *task, struct scratch *scratch)
{
	struct script *script = &scratch->script;

	if (script->process.state_form == SCRIPT_STATE_GLOBAL && task->pid != task->tgid)
		return;
	if (script_perl_start(script, task->thread.fsbase) &&
	    bpf_loop(PERL_CONTEXTS_MAX, next_perl_frame, &scratch, 0) == PERL_CONTEXTS_MAX)
		script_perl_end(script, sample_at_hand(scratch));
}

#define LUA_STEPS_MAX (2 * SCRIPT_FRAMES_MAX + 2 * WALK_LUA_PLACES)

/* bpf_loop callback. */
static long next_lua_frame(__u32 index, void *data)
{
	struct scratch *scratch = *(struct scratch **)data;

	(void)index;
	return !script_lua_frame(&scratch->script, &scratch->walk.lua, sample_at_hand(scratch));
}

WALK_APART void take_lua_frames(struct scratch *scratch)
{
	struct script *script = &scratch->script;

	if (!scratch->walk.has_lua)
		return;
	script->frame = script->lua.thread = script->lua.outer = 0;
	script->index = 0;
	bpf_loop(LUA_STEPS_MAX, next_lua_frame, &scratch, 0);
}

/* The registers of the loop, if it was interrupted; NULL = it was not. */
static __always_inline const __u64 *puc_registers(const struct scratch *scratch,
						  const struct sample *sample)
{
	const struct script_puc_layout *layout = &scratch->script.process.puc;
	__u32 first = sample->kernel_count;

	if (!sample->user_count || first >= SAMPLE_FRAMES_MAX ||
	    sample->frames[first] - layout->code_start >= layout->code_bytes)
		return NULL;
	return scratch->walk.registers;
}

/* bpf_loop callback. */
static long next_puc_frame(__u32 index, void *data)
{
	struct scratch *scratch = *(struct scratch **)data;
	struct sample *sample = sample_at_hand(scratch);

	(void)index;
	return !script_puc_frame(&scratch->script, sample, puc_registers(scratch, sample));
}

#define PUC_STEPS_MAX                                                                              \
	(2 * SCRIPT_FRAMES_MAX +                                                                   \
	 SCRIPT_PUC_THREADS * SCRIPT_PUC_SCAN_WORDS / SCRIPT_PUC_STACK_WORDS)

WALK_APART void take_puc_frames(struct scratch *scratch)
{
	struct walk *walk = &scratch->walk;

	if (walk_read_registers(walk->registers))
		return;
	script_puc_start(&scratch->script, sample_at_hand(scratch), walk->registers);
	bpf_loop(PUC_STEPS_MAX, next_puc_frame, &scratch, 0);
}

/* bpf_loop callback. */
static long next_stack_words(__u32 index, void *data)
{
	struct scratch *scratch = *(struct scratch **)data;

	(void)index;
	return !script_python_seek(&scratch->script);
}

WALK_APART void take_python_frames(__u64 thread, struct scratch *scratch)
{
	struct sample *sample = sample_at_hand(scratch);
	struct walk *walk = &scratch->walk;

	if (walk_read_registers(walk->registers))
		return;
	script_python_start(&scratch->script, thread, walk->registers,
			    walk_leaf_end(walk, walk->registers));
	if (scratch->script.python.left)
		bpf_loop(SCRIPT_PYTHON_SCAN_STEPS, next_stack_words, &scratch, 0);
	if (script_python_settle(&scratch->script, sample))
		bpf_loop(SCRIPT_GOES(SCRIPT_FRAMES_MAX + 1), next_script_frames, &scratch, 0);
}

WALK_APART void take_javascript_frames(struct scratch *scratch)
{
	struct sample *sample = sample_at_hand(scratch);

	if (scratch->script.process.kind == SCRIPT_V8)
		bpf_loop(WALK_PLACES_MAX / SCRIPT_V8_STEPS, next_v8_frames, &scratch, 0);
	else
		bpf_loop(scratch->walk.places_count, next_jsc_frame, &scratch, 0);
	if (sample->user_end == STACK_GUESSED_POINTER)
		sample->user_end = STACK_COMPLETE; /* its code keeps frame pointers */
}

/* The frames of an interpreter, behind the native ones. */
WALK_APART void take_script_frames(struct task_struct *task, struct scratch *scratch)
{
	struct sample *sample = sample_at_hand(scratch);
	const struct script_process *process =
		bpf_map_lookup_elem(&script_processes, &sample->head.tgid);
	struct script *script = &scratch->script;
	__u32 first = sample->kernel_count + sample->user_count;
	bool has_copies;

	if (!process || process->start_ns != sample->head.process_start_ns ||
	    process->exec_id != sample->head.exec_id)
		return;
	script->process = *process;
	script->at = first;
	script->room = SCRIPT_FRAMES_MAX;
	script->sample = sample->head.at_ns;
	has_copies = process->kind == SCRIPT_PHP || process->kind == SCRIPT_PERL;
	script_had_start(&script->had, has_copies ? process->family : sample->head.tgid,
			 has_copies ? script->sample >> SCRIPT_HAD_NS_LOG2 : 0);
	/* What could not be read is asked for again where there may be another copy of it. */
	script->had.lost = has_copies ? lost_copies_in_all : 0;
	script_window_reset(&script->frames, 0);
	script_window_reset(&script->scopes, 0);
	if (process->kind == SCRIPT_V8 || process->kind == SCRIPT_JSC)
		take_javascript_frames(scratch);
	else if (process->kind == SCRIPT_RUBY)
		take_ruby_frames(task->thread.fsbase, scratch);
	else if (process->kind == SCRIPT_PHP)
		take_php_frames(task, scratch);
	else if (process->kind == SCRIPT_PERL)
		take_perl_frames(task, scratch);
	else if (process->kind == SCRIPT_LUA)
		take_lua_frames(scratch);
	else if (process->kind == SCRIPT_PUC)
		take_puc_frames(scratch);
	else
		take_python_frames(task->thread.fsbase, scratch);
	sample->script_kind = process->kind;
	sample->script_words = script->at - first;
	if (script->had.is_new)
		wake_for_code(scratch, script->sample);
}

#endif

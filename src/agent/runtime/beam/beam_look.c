/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/beam/beam_look.h"

#include "agent/runtime/runtime_offsets.h"
#include "base/clock.h"
#include "base/log.h"

void beam_look_start(struct runtimes *runtimes, const struct process *process,
		     const struct runtime_file *file, uint64_t bias, int64_t now_ns)
{
	struct runtime_entry *entry = runtime_entry_new(process, file, bias);

	entry->used_at_ns = now_ns;
	entry->beam = beam_process_new(&file->layout.beam, bias);
	runtime_entry_add(runtimes, entry);
}

static bool is_known(const void *beam, uint64_t address)
{
	return beam_process_find(beam, address);
}

void beam_look_note(struct runtime_entry *entry, uint64_t address)
{
	if (!entry->beam || !is_known(entry->beam, address))
		unknown_code_add(&entry->unknown, address);
}

void beam_look_ask(struct runtimes *runtimes, struct runtime_entry *entry, int64_t now_ns)
{
	struct script_job *job;

	if (!entry->beam || entry->refused || now_ns < entry->ask_at_ns)
		return;
	unknown_code_sift(&entry->unknown, is_known, entry->beam);
	if ((entry->is_read && !entry->unknown.count) || job_thread_is_full(runtimes->reader))
		return;
	job = script_job_new(&entry->identity);
	job->layout = entry->layout;
	job->beam = entry->beam;
	job->wanted = unknown_code_take(&entry->unknown, &job->wanted_count);
	entry->beam = NULL;
	job_thread_put(runtimes->reader, &job->job, now_ns);
}

/* The kernel's program walks its stacks from now on. */
static void walk_beam(struct runtimes *runtimes, struct runtime_entry *entry)
{
	struct code_process code = { .start_ns = entry->identity.start_ns,
				     .exec_id = entry->identity.exec_id,
				     .beam = beam_process_walk(entry->beam) };

	code.beam.keys_at = entry->keys_at;
	entry->is_read = !code.beam.exit || runtimes->options.put_code(runtimes->options.context,
								       entry->identity.pid, &code);
	if (entry->is_read)
		log_debug("runtime", "interpreter", "pid=%u runtime=beam version=%s source=table",
			  (unsigned)entry->identity.pid, entry->version_text);
}

void beam_look_take(struct runtimes *runtimes, struct runtime_entry *entry, struct script_job *job)
{
	int64_t again_ns = RUNTIME_LOOK_SHARE_DIVISOR * job->took_ns;

	if (!entry || entry->beam) /* it was dropped meanwhile, and perhaps found again */
		return;
	entry->beam = job->beam;
	job->beam = NULL;
	if (job->beam_answer == BEAM_NOT_YET)
		again_ns = RUNTIME_ASK_AGAIN_NS;
	entry->ask_at_ns = clock_monotonic_ns() + again_ns;
	if (job->beam_answer == BEAM_UNKNOWN) {
		runtime_offsets_add(runtimes->offsets, RUNTIME_BEAM, entry->version_text,
				    "unknown layout");
		runtime_entry_refuse(runtimes, entry);
	} else if (job->beam_answer == BEAM_ANSWERED && !entry->is_read) {
		walk_beam(runtimes, entry);
	}
}

/* Until it has answered once it is asked again and again. */
int64_t beam_look_due_ns(const struct runtime_entry *entry, int64_t now_ns)
{
	if (entry->refused || entry->is_read)
		return INT64_MAX;
	return now_ns + RUNTIME_ASK_AGAIN_NS;
}

void beam_look_find(const struct runtime_entry *entry, uint64_t address, struct runtimes_code *ret)
{
	const struct beam_place *place =
		entry->beam ? beam_process_find(entry->beam, address) : NULL;

	ret->function = "[beam: name not read]";
	if (!place)
		return;
	ret->is_named = true;
	ret->function = place->function ? place->function : "[stub]";
	ret->file = place->file;
	ret->line = place->line;
}

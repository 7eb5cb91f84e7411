/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/hotspot/hotspot_look.h"

#include <stdlib.h>

#include "agent/bpf/jvm_file.h"
#include "agent/runtime/names/object_names.h"
#include "agent/runtime/runtime_offsets.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#define START_NS (2 * CLOCK_NS_PER_S)
#define EARLY_MAX 4096 /* frames */

_Static_assert(HOTSPOT_VERSION_BYTES == RUNTIME_VERSION_BYTES, "copied as it is");

void hotspot_look_start(struct runtimes *runtimes, const struct process *process,
			const struct binary *binary, uint64_t bias, int64_t now_ns)
{
	const struct runtime_file *file = binary->runtime;
	struct runtime_entry *entry = runtime_entry_new(process, file, bias);

	entry->used_at_ns = entry->asked_at_ns = now_ns;
	if (file->jvm.code_bytes) {
		jvm_entry_of(&entry->jvm, &file->jvm, bias);
		entry->jvm.process.start_ns = process->identity.start_ns;
		entry->jvm.process.exec_id = process->identity.exec_id;
		runtimes->options.put_jvm_file(runtimes->options.context, &binary->key, &file->jvm);
		runtimes->options.put_jvm(runtimes->options.context, process->identity.pid,
					  &entry->jvm);
	}
	runtime_entry_add(runtimes, entry);
}

static void drop_early(struct runtime_entry *entry)
{
	free(entry->early);
	entry->early = NULL;
	entry->early_count = entry->early_capacity = 0;
}

void hotspot_look_keep(struct runtimes *runtimes, struct runtime_entry *entry,
		       const uint64_t *words, size_t count)
{
	struct jvm_entry jvm;

	if (count && !entry->jvm_bytes &&
	    runtimes->options.find_jvm(runtimes->options.context, entry->identity.pid, &jvm) &&
	    jvm.process.start_ns == entry->identity.start_ns &&
	    jvm.process.exec_id == entry->identity.exec_id) {
		entry->jvm_low = jvm.process.low;
		entry->jvm_bytes = jvm.process.bytes;
	}
	for (size_t i = 0; i < 2 * count && entry->early_count < 2 * EARLY_MAX; i++) {
		mem_grow(entry->early, entry->early_count, entry->early_capacity);
		entry->early[entry->early_count++] = words[i];
	}
}

void hotspot_look_ask(struct runtimes *runtimes, struct runtime_entry *entry, int64_t now_ns)
{
	struct script_job *job;

	if (entry->layout.kind != RUNTIME_HOTSPOT || entry->hotspot || entry->is_asked ||
	    entry->refused || now_ns < entry->ask_at_ns)
		return;
	job = script_job_new(&entry->identity);
	job->bias = entry->bias;
	job->layout = entry->layout;
	job->hotspot = mem_new(struct hotspot_process);
	job->state = HOTSPOT_NOT_YET;
	entry->is_asked = job_thread_put(runtimes->reader, &job->job, now_ns);
}

/* What the file says is what the process says. */
static bool is_as_in_file(const struct runtime_entry *entry, const struct hotspot_process *hotspot)
{
	struct jvm_layout layout = hotspot->walk.layout;

	layout.segment_shift = entry->jvm.process.layout.segment_shift;
	return entry->jvm.roots.heaps &&
	       !memcmp(&layout, &entry->jvm.process.layout, sizeof(layout));
}

void hotspot_look_take(struct runtimes *runtimes, struct runtime_entry *entry,
		       struct script_job *job)
{
	struct hotspot_process *hotspot = job->hotspot;
	struct jvm_entry jvm = { 0 };

	entry->is_asked = false;
	if (entry->hotspot)
		return; /* it was dropped and found again, and so asked twice */
	if (job->state == HOTSPOT_NOT_YET) {
		entry->ask_at_ns = clock_monotonic_ns() + RUNTIME_ASK_AGAIN_NS;
		return;
	}
	memcpy(entry->version_text, hotspot->version, sizeof(entry->version_text));
	runtime_offsets_add(runtimes->offsets, RUNTIME_HOTSPOT, hotspot->version,
			    hotspot->problem ? hotspot->problem : "vm_structs");
	hotspot->walk.start_ns = entry->identity.start_ns;
	hotspot->walk.exec_id = entry->identity.exec_id;
	/* The program goes on to look itself: while a runtime starts, some of it still changes. */
	if (is_as_in_file(entry, hotspot))
		jvm.roots = entry->jvm.roots;
	jvm.process = hotspot->walk;
	entry->refused = hotspot->problem || !runtimes->options.put_jvm(runtimes->options.context,
									entry->identity.pid, &jvm);
	if (!entry->refused) {
		job->hotspot = NULL;
		entry->hotspot = hotspot;
		entry->jvm_low = hotspot->walk.low;
		entry->jvm_bytes = hotspot->walk.bytes;
		object_names_note(runtimes, entry, entry->early, entry->early_count / 2,
				  clock_monotonic_ns());
		log_debug("runtime", "interpreter", "pid=%u runtime=hotspot version=%s source=%s",
			  (unsigned)entry->identity.pid, entry->version_text,
			  jvm.roots.heaps ? "file" : "vm_structs");
	}
	drop_early(entry);
}

int64_t hotspot_look_due_ns(const struct runtime_entry *entry, int64_t now_ns)
{
	if (entry->refused || entry->hotspot || now_ns - entry->asked_at_ns > START_NS)
		return INT64_MAX;
	return now_ns + RUNTIME_ASK_AGAIN_NS;
}

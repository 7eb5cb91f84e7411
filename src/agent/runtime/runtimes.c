/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/runtimes.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "agent/runtime/beam/beam_look.h"
#include "agent/runtime/c_library.h"
#include "agent/runtime/dotnet/dotnet_look.h"
#include "agent/runtime/hotspot/hotspot_look.h"
#include "agent/runtime/names/object_names.h"
#include "agent/runtime/runtime_entry.h"
#include "agent/runtime/runtime_metrics.h"
#include "agent/runtime/runtime_offsets.h"
#include "agent/runtime/script_process.h"
#include "agent/runtime/v8/v8_code.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#define UNUSED_KEEP_NS (300 * CLOCK_NS_PER_S)

/* ---- processes ---- */

/* What the binary's virtual addresses are moved by. */
static bool bias_of(const struct mapping *mapping, uint64_t *ret)
{
	const struct elf_info *elf = mapping->binary->elf;

	for (size_t i = 0; i < elf->segments_count; i++) {
		const struct elf_segment *segment = &elf->segments[i];
		uint64_t into = mapping->offset - segment->offset;

		/* A mapping begins with a page, which may be before the segment. */
		if (!segment->executable ||
		    (into >= segment->file_bytes && segment->offset - mapping->offset >= 4096))
			continue;
		*ret = mapping->start - (segment->address + into);
		return true;
	}
	return false;
}

/* Linked to many a program that does another thing: another runtime's frames are more to it. */
static bool is_often_beside(const struct runtime_file *file)
{
	return file->layout.kind == RUNTIME_PERL || file->layout.kind == RUNTIME_LUA ||
	       file->layout.kind == RUNTIME_PUC;
}

/* The first binary that is an interpreter of which frames can be read: code of its ELF file. */
static const struct mapping *find_interpreter(struct runtimes *runtimes, const struct space *space,
					      uint64_t *ret_bias)
{
	const struct mapping *found = NULL;
	uint64_t bias;

	for (uint32_t i = 0; i < space->count; i++) {
		const struct mapping *mapping = &space->mappings[i];

		if (!mapping->binary || !mapping->binary->runtime)
			continue;
		runtime_offsets_add_file(runtimes->offsets, mapping->binary->runtime);
		if (mapping->binary->runtime->problem || !mapping->binary->runtime->source ||
		    !bias_of(mapping, &bias))
			continue;
		if (found && is_often_beside(mapping->binary->runtime))
			continue;
		found = mapping;
		*ret_bias = bias;
		if (!is_often_beside(mapping->binary->runtime))
			return found;
	}
	return found;
}

/* The kernel's program walks its frames from now on. */
static void look_at_script(struct runtimes *runtimes, const struct process *process,
			   const struct runtime_file *file, uint64_t bias, int64_t now_ns)
{
	struct script_process script = script_process_of(&file->script, process, bias, 0);
	struct runtime_entry *entry;

	if (!runtimes->options.put(runtimes->options.context, process->identity.pid, &script))
		return;
	entry = runtime_entry_new(process, file, bias);
	entry->used_at_ns = now_ns;
	runtime_entry_add(runtimes, entry);
	log_debug("runtime", "interpreter", "pid=%u runtime=%s version=%s source=%s",
		  (unsigned)entry->identity.pid, runtime_kind_name(entry->layout.kind),
		  entry->version_text, file->source);
}

static void look_for_interpreter(struct runtimes *runtimes, const struct process *process,
				 const struct space *space, int64_t now_ns)
{
	const struct mapping *mapping;
	const struct runtime_file *file;
	uint64_t bias;

	if (runtimes->count >= RUNTIMES_PROCESSES_MAX)
		return;
	mapping = find_interpreter(runtimes, space, &bias);
	if (!mapping)
		return;
	file = mapping->binary->runtime;
	if (file->layout.kind == RUNTIME_HOTSPOT)
		hotspot_look_start(runtimes, process, mapping->binary, bias, now_ns);
	else if (file->layout.kind == RUNTIME_DOTNET)
		dotnet_look_start(runtimes, process, file, bias, now_ns);
	else if (file->layout.kind == RUNTIME_BEAM)
		beam_look_start(runtimes, process, file, bias, now_ns);
	else
		look_at_script(runtimes, process, file, bias, now_ns);
}

/* Its file may be opened after the interpreter's: until then it is taken for glibc. */
static void look_for_c_library(struct runtimes *runtimes, struct runtime_entry *entry,
			       const struct process *process, const struct space *space)
{
	const struct runtime_file *file;
	const struct mapping *mapping;
	struct script_process script;
	uint64_t bias;

	entry->has_c_library = c_library_of(space, &entry->keys_at);
	mapping = entry->keys_at ? find_interpreter(runtimes, space, &bias) : NULL;
	file = mapping ? mapping->binary->runtime : NULL;
	if (!file || entry->refused || file->layout.kind != entry->layout.kind)
		return;
	if (file->layout.kind == RUNTIME_BEAM)
		entry->is_read = false; /* the program is told once more */
	if (!file->script.kind)
		return;
	script = script_process_of(&file->script, process, bias, entry->keys_at);
	runtimes->options.put(runtimes->options.context, process->identity.pid, &script);
}

void runtimes_look(struct runtimes *runtimes, const struct process *process,
		   const struct space *space, int64_t now_ns)
{
	struct runtime_entry *entry = runtime_entry_find(runtimes, &process->identity);

	if (!entry && space) {
		look_for_interpreter(runtimes, process, space, now_ns);
		entry = runtime_entry_find(runtimes, &process->identity);
	}
	if (!entry)
		return;
	entry->used_at_ns = now_ns;
	if (space && !entry->has_c_library)
		look_for_c_library(runtimes, entry, process, space);
}

/* ---- reading ---- */

void runtimes_note(struct runtimes *runtimes, const struct process_identity *identity,
		   const uint64_t *words, size_t count, int64_t now_ns)
{
	struct runtime_entry *entry = runtime_entry_find(runtimes, identity);

	if (!entry || entry->refused)
		return;
	entry->used_at_ns = now_ns;
	if (entry->layout.kind == RUNTIME_HOTSPOT && !entry->hotspot)
		hotspot_look_keep(runtimes, entry, words, count);
	else
		object_names_note(runtimes, entry, words, count, now_ns);
}

void runtimes_note_again(struct runtimes *runtimes, const struct process_identity *identity,
			 const uint64_t *words, size_t count, int64_t now_ns)
{
	const struct runtime_entry *entry = count ? runtime_entry_find(runtimes, identity) : NULL;

	if (entry && entry->lost_copies)
		runtimes_note(runtimes, identity, words, count, now_ns);
}

/* ---- generated code ---- */

const struct v8_place *runtimes_find_place(const struct runtimes *runtimes,
					   const struct process_identity *identity,
					   uint64_t address)
{
	const struct runtime_entry *entry = runtime_entry_find(runtimes, identity);

	return entry ? object_names_find_place(entry, address) : NULL;
}

const char *runtimes_v8_frame(const struct runtimes *runtimes,
			      const struct process_identity *identity, uint64_t number)
{
	const struct runtime_entry *entry = runtime_entry_find(runtimes, identity);

	return entry && object_names_has_places(entry) ? v8_frame_name(&entry->layout.v8, number)
						       : NULL;
}

/* Its generated code is found by address. */
static bool has_code(const struct runtime_entry *entry)
{
	return !entry->refused &&
	       (entry->layout.kind == RUNTIME_DOTNET || entry->layout.kind == RUNTIME_BEAM);
}

bool runtimes_has_code(const struct runtimes *runtimes, const struct process_identity *identity)
{
	const struct runtime_entry *entry = runtime_entry_find(runtimes, identity);

	return entry && (has_code(entry) || object_names_has_places(entry));
}

void runtimes_note_code(struct runtimes *runtimes, const struct process_identity *identity,
			uint64_t address, int64_t now_ns)
{
	struct runtime_entry *entry = runtime_entry_find(runtimes, identity);

	if (!entry)
		return;
	entry->used_at_ns = now_ns;
	if (object_names_has_places(entry))
		object_names_note_place(runtimes, entry, address, now_ns);
	else if (has_code(entry) && entry->layout.kind == RUNTIME_DOTNET)
		dotnet_look_note(entry, address);
	else if (has_code(entry))
		beam_look_note(entry, address);
}

int runtimes_fd(const struct runtimes *runtimes)
{
	return job_thread_fd(runtimes->reader);
}

static int64_t due_ns_of(const struct runtime_entry *entry, int64_t now_ns)
{
	if (entry->layout.kind == RUNTIME_HOTSPOT)
		return hotspot_look_due_ns(entry, now_ns);
	if (entry->layout.kind == RUNTIME_DOTNET)
		return dotnet_look_due_ns(entry, now_ns);
	if (entry->layout.kind == RUNTIME_BEAM)
		return beam_look_due_ns(entry, now_ns);
	return INT64_MAX;
}

int64_t runtimes_due_ns(const struct runtimes *runtimes, int64_t now_ns)
{
	int64_t due_ns = INT64_MAX;

	for (size_t i = 0; i < runtimes->count; i++) {
		int64_t at_ns = due_ns_of(runtimes->items[i], now_ns);

		due_ns = at_ns < due_ns ? at_ns : due_ns;
	}
	return due_ns;
}

bool runtimes_find_code(const struct runtimes *runtimes, const struct process_identity *identity,
			uint64_t address, struct runtimes_code *ret)
{
	const struct runtime_entry *entry = runtime_entry_find(runtimes, identity);

	if (!entry || !has_code(entry))
		return false;
	*ret = (struct runtimes_code){ .kind = entry->layout.kind, .file = "" };
	if (entry->layout.kind == RUNTIME_DOTNET)
		return dotnet_look_find(entry, address, ret);
	beam_look_find(entry, address, ret);
	return true;
}

static size_t bytes_of(const struct runtime_entry *entry)
{
	return entry->codes.bytes + entry->early_capacity * sizeof(*entry->early) +
	       (entry->dotnet ? dotnet_process_bytes(entry->dotnet) : 0) +
	       (entry->beam ? beam_process_bytes(entry->beam) : 0);
}

static void take_done(struct runtimes *runtimes)
{
	struct job *done;

	while ((done = job_thread_take(runtimes->reader))) {
		struct script_job *job = (struct script_job *)done;
		struct runtime_entry *entry = runtime_entry_find(runtimes, &job->identity);

		if (job->dotnet)
			dotnet_look_take(runtimes, entry, job);
		else if (job->beam)
			beam_look_take(runtimes, entry, job);
		else if (entry && !job->count)
			hotspot_look_take(runtimes, entry, job);
		for (size_t i = 0; entry && i < job->count; i++)
			object_names_take(runtimes, entry, &job->items[i]);
		script_job_free(job);
	}
}

void runtimes_update(struct runtimes *runtimes, int64_t now_ns)
{
	for (size_t i = 0; i < runtimes->count; i++) {
		hotspot_look_ask(runtimes, runtimes->items[i], now_ns);
		dotnet_look_ask(runtimes, runtimes->items[i], now_ns);
		beam_look_ask(runtimes, runtimes->items[i], now_ns);
		if (runtimes->items[i]->job)
			object_names_send(runtimes, runtimes->items[i], now_ns);
	}
	take_done(runtimes);
}

void runtimes_settle(struct runtimes *runtimes, int64_t timeout_ns)
{
	int64_t now_ns = clock_monotonic_ns(), until_ns = now_ns + timeout_ns;

	/* The second time for functions that places named. */
	for (int time = 0; time < 2; time++) {
		runtimes_update(runtimes, now_ns);
		job_thread_settle(runtimes->reader, until_ns > now_ns ? until_ns - now_ns : 0);
		take_done(runtimes);
		now_ns = clock_monotonic_ns();
	}
}

const struct script_code *runtimes_find(const struct runtimes *runtimes,
					const struct process_identity *identity,
					const uint64_t *words)
{
	const struct runtime_entry *entry = runtime_entry_find(runtimes, identity);

	return entry ? object_names_find(runtimes, entry, words) : NULL;
}

bool runtimes_is_noted(const struct runtimes *runtimes, const struct process_identity *identity,
		       uint64_t address)
{
	const struct runtime_entry *entry = runtime_entry_find(runtimes, identity);

	return entry && address - entry->jvm_low < entry->jvm_bytes;
}

/* ---- life ---- */

static int by_use(const void *a, const void *b)
{
	const struct runtime_entry *first = *(struct runtime_entry *const *)a,
				   *second = *(struct runtime_entry *const *)b;

	return (first->used_at_ns < second->used_at_ns) - (first->used_at_ns > second->used_at_ns);
}

/* One that is not needed for long goes, too: its number may be another's by now. */
static bool is_over(const struct runtimes *runtimes, const struct runtime_entry *entry,
		    int64_t now_ns)
{
	if (now_ns - entry->used_at_ns >= UNUSED_KEEP_NS)
		return true;
	return entry->used_at_ns < runtimes->swept_at_ns && kill((pid_t)entry->identity.pid, 0) &&
	       errno == ESRCH;
}

/* Unless another image of that number is read, too: its exec, or a new process. */
static void drop(struct runtimes *runtimes, const struct runtime_entry *entry)
{
	for (size_t i = 0; i < runtimes->count; i++)
		if (runtimes->items[i]->identity.pid == entry->identity.pid)
			return;
	runtimes->options.drop(runtimes->options.context, entry->identity.pid);
}

void runtimes_sweep(struct runtimes *runtimes, int64_t now_ns)
{
	size_t count = runtimes->count, bytes = 0;

	if (count)
		qsort(runtimes->items, count, sizeof(*runtimes->items), by_use);
	idmap_clear(&runtimes->map);
	runtimes->count = 0;
	for (size_t i = 0; i < count; i++) {
		struct runtime_entry *entry = runtimes->items[i];

		if (entry->codes.bytes > RUNTIMES_PROCESS_BYTES_MAX) {
			known_codes_shrink(&entry->codes, runtimes->window,
					   2 * RUNTIMES_PROCESS_BYTES_MAX);
			entry->lost_copies = 0; /* none of them is kept */
		}
		if (entry->dotnet)
			dotnet_process_forget(entry->dotnet);
		if (is_over(runtimes, entry, now_ns) ||
		    bytes + bytes_of(entry) > RUNTIMES_BYTES_MAX) {
			drop(runtimes, entry);
			runtime_entry_free(runtimes, entry);
			continue;
		}
		bytes += bytes_of(entry);
		runtime_entry_add(runtimes, entry);
	}
	runtimes->window++;
	runtimes->swept_at_ns = now_ns;
	job_thread_look_after(runtimes->reader, now_ns);
	metric_set(&runtime_bytes, (int64_t)bytes);
	metric_set(&runtime_processes, (int64_t)runtimes->count);
}

struct runtimes *runtimes_new(const struct runtimes_options *options)
{
	struct runtimes *runtimes = mem_new(struct runtimes);

	runtimes->options = *options;
	runtimes->reader = job_thread_new(&script_reader_work);
	runtimes->offsets = runtime_offsets_new();
	return runtimes;
}

void runtimes_free(struct runtimes *runtimes)
{
	if (!runtimes)
		return;
	runtime_offsets_free(runtimes->offsets);
	job_thread_free(runtimes->reader);
	for (size_t i = 0; i < runtimes->count; i++)
		runtime_entry_free(runtimes, runtimes->items[i]);
	free(runtimes->items);
	idmap_free(&runtimes->map);
	free(runtimes);
}

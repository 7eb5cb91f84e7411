/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/runtime_entry.h"

#include <stdlib.h>

#include "agent/runtime/dotnet/dotnet_look.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"

static uint64_t hash_identity(const struct process_identity *identity)
{
	return hash_mix(hash_mix(identity->start_ns, identity->pid), identity->exec_id);
}

static bool same_identity(const void *context, uint32_t id, const void *key)
{
	const struct runtimes *runtimes = context;
	const struct process_identity *have = &runtimes->items[id]->identity, *wanted = key;

	return have->pid == wanted->pid && have->start_ns == wanted->start_ns &&
	       have->exec_id == wanted->exec_id;
}

struct runtime_entry *runtime_entry_find(const struct runtimes *runtimes,
					 const struct process_identity *identity)
{
	uint32_t id = idmap_find(&runtimes->map, hash_identity(identity), same_identity, runtimes,
				 identity);

	return id == IDMAP_NONE ? NULL : runtimes->items[id];
}

void runtime_entry_add(struct runtimes *runtimes, struct runtime_entry *entry)
{
	mem_grow(runtimes->items, runtimes->count, runtimes->capacity);
	idmap_add(&runtimes->map, hash_identity(&entry->identity), (uint32_t)runtimes->count);
	runtimes->items[runtimes->count++] = entry;
}

struct runtime_entry *runtime_entry_new(const struct process *process,
					const struct runtime_file *file, uint64_t bias)
{
	struct runtime_entry *entry = mem_new(struct runtime_entry);

	entry->identity = process->identity;
	entry->parent = process->image_of_parent ? process->parent_pid : 0;
	entry->bias = bias;
	if (file->script.kind == SCRIPT_PYTHON)
		entry->proof_words = file->script.layout.proof_words;
	entry->layout = file->layout;
	memcpy(entry->version_text, file->version, sizeof(entry->version_text));
	return entry;
}

void runtime_entry_refuse(struct runtimes *runtimes, struct runtime_entry *entry)
{
	entry->refused = true;
	runtimes->options.drop(runtimes->options.context, entry->identity.pid);
	log_warn("runtime", "unknown layout of an interpreter: its frames are not shown",
		 "pid=%u version=%s", (unsigned)entry->identity.pid, entry->version_text);
}

void runtime_entry_free(struct runtimes *runtimes, struct runtime_entry *entry)
{
	dotnet_look_drop_lines(runtimes, entry->dotnet);
	dotnet_process_free(entry->dotnet);
	beam_process_free(entry->beam);
	unknown_code_free(&entry->unknown);
	free(entry->early);
	known_codes_free(&entry->codes);
	script_job_free(entry->job);
	free(entry->hotspot);
	free(entry);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/dotnet/dotnet_look.h"

#include "agent/runtime/runtime_offsets.h"
#include "base/clock.h"
#include "base/log.h"

#define LOOK_ASKED_NS (5 * CLOCK_NS_PER_MS) /* between two looks that samples ask for */

/*
 * While a process compiles, its new code is looked for without being asked: each time that some was
 * found soon again, else after twice the time, up to a bound: code may have come to the place of
 * other code. The share of a CPU that looks take is bounded.
 */
#define LOOK_AGAIN_FIRST_NS (40 * CLOCK_NS_PER_MS)
#define LOOK_AGAIN_LAST_NS (10 * CLOCK_NS_PER_S)
#define LOOK_SHARE_DIVISOR 20
#define LOOK_POLL_NS (10 * CLOCK_NS_PER_MS) /* for one under way */
#define LOOK_IS_STUCK_NS (CLOCK_NS_PER_S)   /* ... which nobody waits for any more */

/* What its last look has changed. */
static void put_lines(struct runtimes *runtimes, const struct dotnet_process *dotnet)
{
	const struct dotnet_line *lines = NULL;
	size_t count = dotnet ? dotnet_process_lines(dotnet, &lines) : 0;

	for (size_t i = 0; i < count; i++) {
		struct code_line_key key = { .line = lines[i].number,
					     .number = dotnet_process_number(dotnet) };

		runtimes->options.put_code_line(runtimes->options.context, &key,
						lines[i].is_gone ? NULL : &lines[i].line);
	}
}

void dotnet_look_drop_lines(struct runtimes *runtimes, struct dotnet_process *dotnet)
{
	if (dotnet)
		dotnet_process_give_up_lines(dotnet);
	put_lines(runtimes, dotnet);
}

void dotnet_look_start(struct runtimes *runtimes, const struct process *process,
		       const struct runtime_file *file, uint64_t bias, int64_t now_ns)
{
	struct code_process code = { .start_ns = process->identity.start_ns,
				     .exec_id = process->identity.exec_id,
				     .number = ++runtimes->numbers };
	struct runtime_entry *entry;

	if (!runtimes->options.put_code(runtimes->options.context, process->identity.pid, &code))
		return;
	entry = runtime_entry_new(process, file, bias);
	entry->used_at_ns = now_ns;
	entry->dotnet = dotnet_process_new(&file->layout.dotnet, bias, code.number);
	runtime_entry_add(runtimes, entry);
	log_debug("runtime", "interpreter", "pid=%u runtime=dotnet version=%s source=%s",
		  (unsigned)entry->identity.pid, entry->version_text, file->source);
}

static bool is_known(const void *context, uint64_t address)
{
	const struct dotnet_process *dotnet = context;

	return dotnet_process_find(dotnet, address) || dotnet_process_is_nothing(dotnet, address);
}

void dotnet_look_note(struct runtime_entry *entry, uint64_t address)
{
	if (!entry->dotnet || !is_known(entry->dotnet, address))
		unknown_code_add(&entry->unknown, address);
}

void dotnet_look_ask(struct runtimes *runtimes, struct runtime_entry *entry, int64_t now_ns)
{
	struct script_job *job;

	if (!entry->dotnet || entry->refused || now_ns < entry->ask_at_ns)
		return;
	unknown_code_sift(&entry->unknown, is_known, entry->dotnet);
	if (entry->is_read && !entry->unknown.count && now_ns < entry->look_again_at_ns)
		return;
	if (job_thread_is_full(runtimes->reader))
		return;
	job = script_job_new(&entry->identity);
	job->layout = entry->layout;
	job->dotnet = entry->dotnet;
	job->wanted = unknown_code_take(&entry->unknown, &job->wanted_count);
	entry->asked_at_ns = now_ns;
	entry->dotnet = NULL;
	job_thread_put(runtimes->reader, &job->job, now_ns);
}

/* When to look again at what has been looked at. */
static void plan_look(struct runtime_entry *entry, int64_t took_ns)
{
	const struct dotnet_line *lines;
	int64_t now_ns = clock_monotonic_ns(), least_ns = took_ns * RUNTIME_LOOK_SHARE_DIVISOR;
	size_t count = dotnet_process_lines(entry->dotnet, &lines);

	log_debug("runtime", "code", "pid=%u lines=%zu took_ms=%.1f", (unsigned)entry->identity.pid,
		  count, (double)took_ns / CLOCK_NS_PER_MS);
	if (count)
		entry->look_again_ns = LOOK_AGAIN_FIRST_NS;
	else if (entry->look_again_ns < LOOK_AGAIN_LAST_NS)
		entry->look_again_ns *= 2;
	entry->ask_at_ns = now_ns + (least_ns > LOOK_ASKED_NS ? least_ns : LOOK_ASKED_NS);
	entry->look_again_at_ns = now_ns + entry->look_again_ns;
	if (entry->look_again_ns < took_ns * LOOK_SHARE_DIVISOR)
		entry->look_again_at_ns = now_ns + took_ns * LOOK_SHARE_DIVISOR;
}

void dotnet_look_take(struct runtimes *runtimes, struct runtime_entry *entry,
		      struct script_job *job)
{
	/* It was dropped meanwhile, and perhaps found again. */
	if (!entry || entry->dotnet) {
		dotnet_look_drop_lines(runtimes, job->dotnet);
		return;
	}
	entry->dotnet = job->dotnet;
	job->dotnet = NULL;
	entry->ask_at_ns = clock_monotonic_ns() + RUNTIME_ASK_AGAIN_NS;
	if (job->answer == DOTNET_NOT_YET)
		return;
	if (job->answer == DOTNET_UNKNOWN) {
		runtime_offsets_add(runtimes->offsets, RUNTIME_DOTNET, entry->version_text,
				    "unknown layout");
		runtime_entry_refuse(runtimes, entry);
		return;
	}
	entry->is_read = true;
	put_lines(runtimes, entry->dotnet);
	plan_look(entry, job->took_ns);
}

int64_t dotnet_look_due_ns(const struct runtime_entry *entry, int64_t now_ns)
{
	if (entry->refused)
		return INT64_MAX;
	if (entry->dotnet && entry->is_read && !entry->unknown.count)
		return entry->look_again_at_ns;
	if (entry->dotnet || now_ns - entry->asked_at_ns < LOOK_IS_STUCK_NS)
		return now_ns + LOOK_POLL_NS;
	return INT64_MAX;
}

static bool find_code(const struct dotnet_process *dotnet, uint64_t address,
		      struct runtimes_code *ret)
{
	const struct dotnet_function *function = dotnet_process_find(dotnet, address);

	if (!function)
		function = dotnet_process_find_gone(dotnet, address);
	if (!function && !dotnet_process_has(dotnet, address))
		return false;
	ret->is_named = true;
	if (function && function->name)
		ret->function = function->name;
	else if (!function && dotnet_process_has_stub(dotnet, address))
		ret->function = "[stub]";
	else
		ret->is_named = false;
	return true;
}

bool dotnet_look_find(const struct runtime_entry *entry, uint64_t address,
		      struct runtimes_code *ret)
{
	ret->function = "[dotnet: name not read]";
	return entry->dotnet && find_code(entry->dotnet, address, ret);
}

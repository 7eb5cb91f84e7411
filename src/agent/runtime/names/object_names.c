/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/names/object_names.h"

#include <stdlib.h>

#include "agent/runtime/runtime_metrics.h"
#include "base/clock.h"
#include "base/mem.h"

#define DOUBT_MAX 16 /* objects that are none, before one is, until we do not believe it */
#define PLACE_KEY (1ull << 63) /* in keys of places in code, which others' objects lack */
#define PLACE_WINDOWS 6	       /* after which it is read again, at first ... */
#define PLACE_WINDOWS_MAX 12u  /* ... and where it stays the same */

/*
 * A copy of code, as of a closure, may live for a millisecond. One that was gone before it was read
 * has the next samples wake the agent at once, which tries with the copy that they saw, up to a
 * bound: it may never succeed.
 */
#define COPIES_TRIED_MAX 100u

/* Where too many wait, it goes later. */
void object_names_send(struct runtimes *runtimes, struct runtime_entry *entry, int64_t now_ns)
{
	if (!entry->job || job_thread_is_full(runtimes->reader))
		return;
	entry->job->layout = entry->layout; /* with what V8's objects have told since */
	job_thread_put(runtimes->reader, &entry->job->job, now_ns);
	entry->job = NULL;
}

/* NULL of other runtimes. */
static struct hotspot_process *copy_hotspot(const struct runtime_entry *entry)
{
	struct hotspot_process *copy;

	if (!entry->hotspot)
		return NULL;
	copy = mem_new(struct hotspot_process);
	*copy = *entry->hotspot;
	return copy;
}

/* Closures of the same code are objects of their own. */
static bool has_copies(const struct runtime_entry *entry)
{
	return entry->layout.kind == RUNTIME_PHP || entry->layout.kind == RUNTIME_PERL;
}

/*
 * What an object is known by, beside its proof: its address, or, where it may be one of many
 * copies, the rest of the proof.
 */
static uint64_t key_of(const struct runtime_entry *entry, uint64_t word)
{
	return has_copies(entry) ? word >> SCRIPT_PLACE_SHIFT : SCRIPT_ADDRESS(word);
}

/* False while too many jobs wait: what is wanted now is asked for when it is seen again. */
static bool has_room(const struct runtime_entry *entry)
{
	bool has = !entry->job || entry->job->count < SCRIPT_JOB_ITEMS;

	metric_add(&runtime_codes_refused, !has);
	return has;
}

/* An item of the job that is being filled, which has room; send_if_full is to follow. */
static struct script_job_item *next_item(struct runtime_entry *entry)
{
	if (!entry->job) {
		entry->job = script_job_new(&entry->identity);
		entry->job->proof_words = entry->proof_words;
		entry->job->bias = entry->bias;
		entry->job->hotspot = copy_hotspot(entry);
		entry->job->tells_lost = has_copies(entry);
	}
	return &entry->job->items[entry->job->count++];
}

static void send_if_full(struct runtimes *runtimes, struct runtime_entry *entry, int64_t now_ns)
{
	if (entry->job->count == SCRIPT_JOB_ITEMS)
		object_names_send(runtimes, entry, now_ns);
}

static void want(struct runtimes *runtimes, struct runtime_entry *entry, struct known_code *code,
		 uint64_t address, int64_t now_ns)
{
	struct script_job_item *item = next_item(entry);

	item->key = code->key;
	item->address = address;
	item->proof = code->proof;
	item->is_again = code->state == CODE_LOST;
	entry->lost_copies -= item->is_again;
	code->state = CODE_WANTED;
	send_if_full(runtimes, entry, now_ns);
}

static const struct script_code *known_code(const struct runtime_entry *entry, uint64_t key,
					    uint32_t proof)
{
	const struct known_code *code = known_codes_find(&entry->codes, key, proof);

	return code && code->state == CODE_KNOWN ? &code->code : NULL;
}

/* What a process knows that was forked from the same one, or the one itself. */
static const struct script_code *known_in_family(const struct runtimes *runtimes,
						 const struct runtime_entry *entry, uint64_t key,
						 uint32_t proof)
{
	const struct script_code *code = NULL;

	for (size_t i = 0; i < runtimes->count && entry->parent && !code; i++)
		if (runtimes->items[i]->identity.pid == entry->parent ||
		    runtimes->items[i]->parent == entry->parent)
			code = known_code(runtimes->items[i], key, proof);
	return code;
}

/*
 * PHP functions in files are known by what they say, which is the same in all workers of a pool. So
 * one that another worker ran is not read again, and wakes nobody (script_process.family).
 * Functions in C are known by the addresses of their names, which may differ.
 */
static bool is_told_by_family(const struct runtimes *runtimes, struct runtime_entry *entry,
			      struct known_code *code)
{
	const struct script_code *told = NULL;

	if (entry->layout.kind == RUNTIME_PHP)
		told = known_in_family(runtimes, entry, code->key, code->proof);
	if (!told || !*told->file)
		return false;
	entry->lost_copies -= code->state == CODE_LOST;
	code->state = CODE_KNOWN;
	code->code = script_code_copy(told);
	entry->codes.bytes += script_code_bytes(&code->code);
	return true;
}

/* Another copy of the object may be there still. */
static bool is_lost_copy(const struct runtime_entry *entry, const struct known_code *code)
{
	return has_copies(entry) && code->state == CODE_LOST;
}

static void note_object(struct runtimes *runtimes, struct runtime_entry *entry, uint64_t word,
			uint32_t proof, int64_t now_ns)
{
	struct known_code *code = known_codes_find(&entry->codes, key_of(entry, word), proof);

	if (!code || is_lost_copy(entry, code)) {
		if (!has_room(entry))
			return;
		if (!code)
			code = known_codes_add(&entry->codes, key_of(entry, word), proof);
		if (!is_told_by_family(runtimes, entry, code))
			want(runtimes, entry, code, SCRIPT_ADDRESS(word), now_ns);
	}
	code->window = runtimes->window;
}

void object_names_note(struct runtimes *runtimes, struct runtime_entry *entry,
		       const uint64_t *words, size_t count, int64_t now_ns)
{
	for (size_t i = 0; i < count; i++) {
		if (words[2 * i] & SCRIPT_IS_CUT || !SCRIPT_ADDRESS(words[2 * i]))
			continue;
		note_object(runtimes, entry, words[2 * i], (uint32_t)(words[2 * i + 1] >> 32),
			    now_ns);
		if (entry->layout.kind == RUNTIME_V8)
			v8_layout_note(&entry->layout.v8, SCRIPT_ADDRESS(words[2 * i]));
	}
}

const struct script_code *object_names_find(const struct runtimes *runtimes,
					    const struct runtime_entry *entry,
					    const uint64_t *words)
{
	uint64_t key = key_of(entry, words[0]);
	uint32_t proof = (uint32_t)(words[1] >> 32);
	const struct script_code *code = known_code(entry, key, proof);

	return code ? code : known_in_family(runtimes, entry, key, proof);
}

/* ---- places in V8's optimized code ---- */

bool object_names_has_places(const struct runtime_entry *entry)
{
	return !entry->refused && entry->layout.kind == RUNTIME_V8;
}

/*
 * Code may come to the place of other code, so what was read of one is read again after a while,
 * and twice as late each time that it was the same. Until then the function that the frame itself
 * names tells code of another one apart.
 */
void object_names_note_place(struct runtimes *runtimes, struct runtime_entry *entry,
			     uint64_t address, int64_t now_ns)
{
	struct known_code *code = known_codes_find(&entry->codes, address | PLACE_KEY, 0);
	struct script_job_item *item;

	if (code && (code->state != CODE_KNOWN ||
		     runtimes->window - code->read_window < code->read_after)) {
		code->window = runtimes->window;
		return;
	}
	if (!has_room(entry))
		return;
	if (!code) {
		code = known_codes_add(&entry->codes, address | PLACE_KEY, 0);
		code->read_after = PLACE_WINDOWS;
	}
	code->window = code->read_window = runtimes->window;
	item = next_item(entry);
	item->key = address | PLACE_KEY;
	item->address = address;
	item->is_place = true;
	send_if_full(runtimes, entry, now_ns);
}

/* Where there is no optimized code there may be soon. */
static uint32_t next_reading(const struct known_code *code, const struct v8_place *place)
{
	uint32_t longer = 2 * code->read_after;

	if (!place->count || !v8_place_equals(code->code.v8, place))
		return PLACE_WINDOWS;
	return longer < PLACE_WINDOWS_MAX ? longer : PLACE_WINDOWS_MAX;
}

const struct v8_place *object_names_find_place(const struct runtime_entry *entry, uint64_t address)
{
	const struct known_code *code = known_codes_find(&entry->codes, address | PLACE_KEY, 0);

	return code && code->state == CODE_KNOWN ? code->code.v8 : NULL;
}

static void take_place(struct runtimes *runtimes, struct runtime_entry *entry,
		       struct script_job_item *item)
{
	struct known_code *code = known_codes_find(&entry->codes, item->key, 0);
	const struct v8_place *place = item->code.v8;

	if (!code || !place)
		return;
	if (code->state == CODE_KNOWN)
		code->read_after = next_reading(code, place);
	entry->codes.bytes -= script_code_bytes(&code->code);
	script_code_fini(&code->code);
	code->state = CODE_KNOWN;
	code->code = item->code;
	item->code = (struct script_code){ 0 };
	entry->codes.bytes += script_code_bytes(&code->code);
	for (size_t i = 0; i < place->count; i++)
		note_object(runtimes, entry, place->functions[i].shared, place->functions[i].proof,
			    clock_monotonic_ns());
}

/* ---- what was read ---- */

static void take_lost_copy(const struct runtimes *runtimes, struct runtime_entry *entry,
			   struct known_code *code)
{
	entry->lost_copies++;
	if (is_told_by_family(runtimes, entry, code) || code->lost++ >= COPIES_TRIED_MAX)
		return;
	/* The proof as a frame has it, of which key_of took a part. */
	runtimes->options.ask_for_copies(runtimes->options.context,
					 (uint64_t)code->proof << 32 | code->key);
}

void object_names_take(struct runtimes *runtimes, struct runtime_entry *entry,
		       struct script_job_item *item)
{
	struct known_code *code;

	if (item->is_place) {
		take_place(runtimes, entry, item);
		return;
	}
	code = known_codes_find(&entry->codes, item->key, item->proof);
	if (item->result == SCRIPT_CODE_READ)
		metric_add(&runtime_codes_read, 1);
	else if (item->result == SCRIPT_CODE_GONE)
		metric_add(&runtime_codes_gone, 1);
	else
		metric_add(&runtime_codes_other, 1);
	entry->read += item->result == SCRIPT_CODE_READ;
	entry->other += item->result == SCRIPT_CODE_OTHER && !item->is_again;
	if (entry->other > DOUBT_MAX && !entry->read && !entry->refused)
		runtime_entry_refuse(runtimes, entry);
	if (!code || code->state != CODE_WANTED)
		return;
	if (item->result == SCRIPT_CODE_OTHER && runtime_has_native_frames(entry->layout.kind))
		item->code = script_code_none(); /* a native frame that looked like one of its */
	code->state = item->code.function || item->code.java ? CODE_KNOWN : CODE_LOST;
	code->code = item->code;
	item->code = (struct script_code){ 0 };
	entry->codes.bytes += script_code_bytes(&code->code);
	if (is_lost_copy(entry, code))
		take_lost_copy(runtimes, entry, code);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/runtimes.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "agent/bpf/jvm_file.h"
#include "agent/runtime/c_library.h"
#include "agent/runtime/known_codes.h"
#include "agent/runtime/runtime_file.h"
#include "agent/runtime/runtime_metrics.h"
#include "agent/runtime/runtime_offsets.h"
#include "agent/runtime/script_process.h"
#include "agent/runtime/script_reader.h"
#include "agent/runtime/v8/v8_code.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"

#define UNUSED_KEEP_NS (300 * CLOCK_NS_PER_S)
#define DOUBT_MAX 16 /* objects that are none, before one is, until we do not believe it */
#define ASK_AGAIN_NS (20 * CLOCK_NS_PER_MS)
#define HOTSPOT_START_NS (2 * CLOCK_NS_PER_S)
#define WANTED_MAX 1024
#define EARLY_MAX 4096	       /* frames */
#define PLACE_KEY (1ull << 63) /* in keys of places in code, which others' objects lack */
#define PLACE_WINDOWS 6	       /* after which it is read again, at first ... */
#define PLACE_WINDOWS_MAX 12u  /* ... and where it stays the same */
#define LOOK_ASKED_NS (5 * CLOCK_NS_PER_MS) /* between two looks that samples ask for */

/*
 * While a process compiles, its new code is looked for without being asked: each time that some was
 * found soon again, else after twice the time, up to a bound: code may have come to the place of
 * other code. The share of a CPU that looks take is bounded.
 */
#define LOOK_AGAIN_FIRST_NS (40 * CLOCK_NS_PER_MS)
#define LOOK_AGAIN_LAST_NS (10 * CLOCK_NS_PER_S)
#define LOOK_SHARE_DIVISOR 20
#define LOOK_ASKED_SHARE_DIVISOR 3	    /* where samples ask for it */
#define LOOK_POLL_NS (10 * CLOCK_NS_PER_MS) /* for one under way */
#define LOOK_IS_STUCK_NS (CLOCK_NS_PER_S)   /* ... which nobody waits for any more */

/*
 * A copy of code, as of a closure, may live for a millisecond. One that was gone before it was read
 * has the next samples wake the agent at once, which tries with the copy that they saw, up to a
 * bound: it may never succeed.
 */
#define COPIES_TRIED_MAX 100u

/* A process image with an interpreter. */
struct entry {
	struct process_identity identity;
	uint32_t parent; /* pid; 0 = it has called exec since the fork */
	int64_t used_at_ns;
	uint64_t bias;
	uint32_t proof_words;
	struct runtime_layout layout;
	struct hotspot_process *hotspot; /* of a HotSpot, once it is known */
	struct jvm_entry jvm;		 /* ... by its file, which has no roots where it is not */
	uint64_t jvm_low, jvm_bytes;	 /* ... where all its generated code is; 0 = not known */
	uint64_t *early;		 /* ... frames (two words each) from before it was known */
	size_t early_count, early_capacity;
	bool is_asked; /* ... a job is at that */
	int64_t ask_at_ns;
	struct dotnet_process *dotnet; /* of a .NET, unless a job has it */
	struct beam_process *beam;     /* of an Erlang, the same */
	uint64_t *wanted;	       /* addresses of its code */
	size_t wanted_count, wanted_capacity;
	bool is_read;		  /* once */
	int64_t look_again_ns;	  /* after how long */
	int64_t look_again_at_ns; /* of the clock */
	int64_t asked_at_ns;
	struct known_codes codes;
	size_t lost_copies;	/* of codes: see is_lost_copy */
	struct script_job *job; /* being filled */
	uint32_t read, other;	/* objects */
	bool refused;		/* its structures are not what we take them for */
	bool has_c_library;	/* its C library is known for good */
	uint16_t keys_at;	/* as c_library_of says */
	char version_text[RUNTIME_VERSION_BYTES];
};

struct runtimes {
	struct runtimes_options options;
	struct job_thread *reader; /* its jobs are script_jobs */
	struct entry **items;
	size_t count, capacity;
	struct idmap map;
	uint32_t window;
	uint32_t numbers; /* of processes with lines of code, so far */
	int64_t swept_at_ns;
	struct runtime_offsets *offsets;
};

/* ---- processes ---- */

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

/* Nothing is known of its code any more. */
static void drop_lines(struct runtimes *runtimes, struct dotnet_process *dotnet)
{
	if (dotnet)
		dotnet_process_give_up_lines(dotnet);
	put_lines(runtimes, dotnet);
}

static void entry_free(struct runtimes *runtimes, struct entry *entry)
{
	drop_lines(runtimes, entry->dotnet);
	dotnet_process_free(entry->dotnet);
	beam_process_free(entry->beam);
	free(entry->wanted);
	free(entry->early);
	known_codes_free(&entry->codes);
	script_job_free(entry->job);
	free(entry->hotspot);
	free(entry);
}

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

static struct entry *find_entry(const struct runtimes *runtimes,
				const struct process_identity *identity)
{
	uint32_t id = idmap_find(&runtimes->map, hash_identity(identity), same_identity, runtimes,
				 identity);

	return id == IDMAP_NONE ? NULL : runtimes->items[id];
}

static void add_entry(struct runtimes *runtimes, struct entry *entry)
{
	mem_grow(runtimes->items, runtimes->count, runtimes->capacity);
	idmap_add(&runtimes->map, hash_identity(&entry->identity), (uint32_t)runtimes->count);
	runtimes->items[runtimes->count++] = entry;
}

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

static struct entry *entry_new(const struct process *process, const struct runtime_file *file,
			       uint64_t bias)
{
	struct entry *entry = mem_new(struct entry);

	entry->identity = process->identity;
	entry->parent = process->image_of_parent ? process->parent_pid : 0;
	entry->bias = bias;
	if (file->script.kind == SCRIPT_PYTHON)
		entry->proof_words = file->script.layout.proof_words;
	entry->layout = file->layout;
	memcpy(entry->version_text, file->version, sizeof(entry->version_text));
	return entry;
}

/*
 * The program walks it from now on, if the file tells enough; runtimes_update asks the process, as
 * names need more.
 */
static void look_at_hotspot(struct runtimes *runtimes, const struct process *process,
			    const struct binary *binary, uint64_t bias, int64_t now_ns)
{
	const struct runtime_file *file = binary->runtime;
	struct entry *entry = entry_new(process, file, bias);

	entry->used_at_ns = entry->asked_at_ns = now_ns;
	if (file->jvm.code_bytes) {
		jvm_entry_of(&entry->jvm, &file->jvm, bias);
		entry->jvm.process.start_ns = process->identity.start_ns;
		entry->jvm.process.exec_id = process->identity.exec_id;
		runtimes->options.put_jvm_file(runtimes->options.context, &binary->key, &file->jvm);
		runtimes->options.put_jvm(runtimes->options.context, process->identity.pid,
					  &entry->jvm);
	}
	add_entry(runtimes, entry);
}

/* runtimes_update has a look at its code. */
static void look_at_dotnet(struct runtimes *runtimes, const struct process *process,
			   const struct runtime_file *file, uint64_t bias, int64_t now_ns)
{
	struct code_process code = { .start_ns = process->identity.start_ns,
				     .exec_id = process->identity.exec_id,
				     .number = ++runtimes->numbers };
	struct entry *entry;

	if (!runtimes->options.put_code(runtimes->options.context, process->identity.pid, &code))
		return;
	entry = entry_new(process, file, bias);
	entry->used_at_ns = now_ns;
	entry->dotnet = dotnet_process_new(&file->layout.dotnet, bias, code.number);
	add_entry(runtimes, entry);
	log_debug("runtime", "interpreter", "pid=%u runtime=dotnet version=%s source=%s",
		  (unsigned)entry->identity.pid, entry->version_text, file->source);
}

/* runtimes_update has a look at its code, and then the kernel's program walks it. */
static void look_at_beam(struct runtimes *runtimes, const struct process *process,
			 const struct runtime_file *file, uint64_t bias, int64_t now_ns)
{
	struct entry *entry = entry_new(process, file, bias);

	entry->used_at_ns = now_ns;
	entry->beam = beam_process_new(&file->layout.beam, bias);
	add_entry(runtimes, entry);
}

/* The kernel's program walks its frames from now on. */
static void look_at_script(struct runtimes *runtimes, const struct process *process,
			   const struct runtime_file *file, uint64_t bias, int64_t now_ns)
{
	struct script_process script = script_process_of(&file->script, process, bias, 0);
	struct entry *entry;

	if (!runtimes->options.put(runtimes->options.context, process->identity.pid, &script))
		return;
	entry = entry_new(process, file, bias);
	entry->used_at_ns = now_ns;
	add_entry(runtimes, entry);
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
		look_at_hotspot(runtimes, process, mapping->binary, bias, now_ns);
	else if (file->layout.kind == RUNTIME_DOTNET)
		look_at_dotnet(runtimes, process, file, bias, now_ns);
	else if (file->layout.kind == RUNTIME_BEAM)
		look_at_beam(runtimes, process, file, bias, now_ns);
	else
		look_at_script(runtimes, process, file, bias, now_ns);
}

/* Its file may be opened after the interpreter's: until then it is taken for glibc. */
static void look_for_c_library(struct runtimes *runtimes, struct entry *entry,
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
	struct entry *entry = find_entry(runtimes, &process->identity);

	if (!entry && space) {
		look_for_interpreter(runtimes, process, space, now_ns);
		entry = find_entry(runtimes, &process->identity);
	}
	if (!entry)
		return;
	entry->used_at_ns = now_ns;
	if (space && !entry->has_c_library)
		look_for_c_library(runtimes, entry, process, space);
}

/* ---- reading ---- */

/* Where too many wait, it goes later. */
static void send_job(struct runtimes *runtimes, struct entry *entry, int64_t now_ns)
{
	if (!entry->job || job_thread_is_full(runtimes->reader))
		return;
	job_thread_put(runtimes->reader, &entry->job->job, now_ns);
	entry->job = NULL;
}

/* NULL of other runtimes. */
static struct hotspot_process *copy_hotspot(const struct entry *entry)
{
	struct hotspot_process *copy;

	if (!entry->hotspot)
		return NULL;
	copy = mem_new(struct hotspot_process);
	*copy = *entry->hotspot;
	return copy;
}

/* Closures of the same code are objects of their own. */
static bool has_copies(const struct entry *entry)
{
	return entry->layout.kind == RUNTIME_PHP || entry->layout.kind == RUNTIME_PERL;
}

/* What an object is known by, beside its proof: its address, or, where it may be one of many
 * copies, the rest of the proof. */
static uint64_t key_of(const struct entry *entry, uint64_t word)
{
	return has_copies(entry) ? word >> SCRIPT_PLACE_SHIFT : SCRIPT_ADDRESS(word);
}

/* False while too many jobs wait: what is wanted now is asked for when it is seen again. */
static bool has_room(const struct entry *entry)
{
	bool has = !entry->job || entry->job->count < SCRIPT_JOB_ITEMS;

	metric_add(&runtime_codes_refused, !has);
	return has;
}

/* An item of the job that is being filled, which has room; send_if_full is to follow. */
static struct script_job_item *next_item(struct entry *entry)
{
	if (!entry->job) {
		entry->job = script_job_new(&entry->identity);
		entry->job->proof_words = entry->proof_words;
		entry->job->bias = entry->bias;
		entry->job->layout = entry->layout;
		entry->job->hotspot = copy_hotspot(entry);
		entry->job->tells_lost = has_copies(entry);
	}
	return &entry->job->items[entry->job->count++];
}

static void send_if_full(struct runtimes *runtimes, struct entry *entry, int64_t now_ns)
{
	if (entry->job->count == SCRIPT_JOB_ITEMS)
		send_job(runtimes, entry, now_ns);
}

static void want(struct runtimes *runtimes, struct entry *entry, struct known_code *code,
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

static const struct script_code *known_code(const struct entry *entry, uint64_t key, uint32_t proof)
{
	const struct known_code *code = known_codes_find(&entry->codes, key, proof);

	return code && code->state == CODE_KNOWN ? &code->code : NULL;
}

/* What a process knows that was forked from the same one, or the one itself. */
static const struct script_code *known_in_family(const struct runtimes *runtimes,
						 const struct entry *entry, uint64_t key,
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
static bool is_told_by_family(const struct runtimes *runtimes, struct entry *entry,
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
static bool is_lost_copy(const struct entry *entry, const struct known_code *code)
{
	return has_copies(entry) && code->state == CODE_LOST;
}

static void note_object(struct runtimes *runtimes, struct entry *entry, uint64_t word,
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

static void note_words(struct runtimes *runtimes, struct entry *entry, const uint64_t *words,
		       size_t count, int64_t now_ns)
{
	for (size_t i = 0; i < count; i++) {
		if (words[2 * i] & SCRIPT_IS_CUT || !SCRIPT_ADDRESS(words[2 * i]))
			continue;
		note_object(runtimes, entry, words[2 * i], (uint32_t)(words[2 * i + 1] >> 32),
			    now_ns);
	}
}

static void drop_early(struct entry *entry)
{
	free(entry->early);
	entry->early = NULL;
	entry->early_count = entry->early_capacity = 0;
}

/* The program walks it already: its names are asked for as soon as they can be read. */
static void keep_early(struct runtimes *runtimes, struct entry *entry, const uint64_t *words,
		       size_t count)
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

void runtimes_note(struct runtimes *runtimes, const struct process_identity *identity,
		   const uint64_t *words, size_t count, int64_t now_ns)
{
	struct entry *entry = find_entry(runtimes, identity);

	if (!entry || entry->refused)
		return;
	entry->used_at_ns = now_ns;
	if (entry->layout.kind == RUNTIME_HOTSPOT && !entry->hotspot)
		keep_early(runtimes, entry, words, count);
	else
		note_words(runtimes, entry, words, count, now_ns);
}

void runtimes_note_again(struct runtimes *runtimes, const struct process_identity *identity,
			 const uint64_t *words, size_t count, int64_t now_ns)
{
	const struct entry *entry = count ? find_entry(runtimes, identity) : NULL;

	if (entry && entry->lost_copies)
		runtimes_note(runtimes, identity, words, count, now_ns);
}

/* ---- places in V8's optimized code ---- */

static bool has_places(const struct entry *entry)
{
	return !entry->refused && entry->layout.kind == RUNTIME_V8;
}

/*
 * Code may come to the place of other code, so what was read of one is read again after a while,
 * and twice as late each time that it was the same. Until then the function that the frame itself
 * names tells code of another one apart.
 */
static void note_place(struct runtimes *runtimes, struct entry *entry, uint64_t address,
		       int64_t now_ns)
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

static void take_place(struct runtimes *runtimes, struct entry *entry, struct script_job_item *item)
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

const struct v8_place *runtimes_find_place(const struct runtimes *runtimes,
					   const struct process_identity *identity,
					   uint64_t address)
{
	const struct entry *entry = find_entry(runtimes, identity);
	const struct known_code *code =
		entry ? known_codes_find(&entry->codes, address | PLACE_KEY, 0) : NULL;

	return code && code->state == CODE_KNOWN ? code->code.v8 : NULL;
}

const char *runtimes_v8_frame(const struct runtimes *runtimes,
			      const struct process_identity *identity, uint64_t number)
{
	const struct entry *entry = find_entry(runtimes, identity);

	return entry && has_places(entry) ? v8_frame_name(&entry->layout.v8, number) : NULL;
}

/* Its first objects are none: better no frames than wrong ones. */
static void refuse(struct runtimes *runtimes, struct entry *entry)
{
	entry->refused = true;
	runtimes->options.drop(runtimes->options.context, entry->identity.pid);
	log_warn("runtime", "unknown layout of an interpreter: its frames are not shown",
		 "pid=%u version=%s", (unsigned)entry->identity.pid, entry->version_text);
}

static void take_lost_copy(const struct runtimes *runtimes, struct entry *entry,
			   struct known_code *code)
{
	entry->lost_copies++;
	if (is_told_by_family(runtimes, entry, code) || code->lost++ >= COPIES_TRIED_MAX)
		return;
	/* The proof as a frame has it, of which key_of took a part. */
	runtimes->options.ask_for_copies(runtimes->options.context,
					 (uint64_t)code->proof << 32 | code->key);
}

static void take_item(struct runtimes *runtimes, struct entry *entry, struct script_job_item *item)
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
		refuse(runtimes, entry);
	if (!code || code->state != CODE_WANTED)
		return;
	if (item->result == SCRIPT_CODE_OTHER && entry->layout.kind == RUNTIME_V8)
		item->code = script_code_none(); /* a native frame that looked like one of V8's */
	code->state = item->code.function || item->code.java ? CODE_KNOWN : CODE_LOST;
	code->code = item->code;
	item->code = (struct script_code){ 0 };
	entry->codes.bytes += script_code_bytes(&code->code);
	if (is_lost_copy(entry, code))
		take_lost_copy(runtimes, entry, code);
}

/* Asks a HotSpot that is not known yet how its structures lie. */
static void ask_hotspot(struct runtimes *runtimes, struct entry *entry, int64_t now_ns)
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

_Static_assert(HOTSPOT_VERSION_BYTES == RUNTIME_VERSION_BYTES, "copied as it is");

/* What the file says is what the process says. */
static bool is_as_in_file(const struct entry *entry, const struct hotspot_process *hotspot)
{
	struct jvm_layout layout = hotspot->walk.layout;

	layout.segment_shift = entry->jvm.process.layout.segment_shift;
	return entry->jvm.roots.heaps &&
	       !memcmp(&layout, &entry->jvm.process.layout, sizeof(layout));
}

/* Its frames are read from now on, or never. */
static void take_hotspot(struct runtimes *runtimes, struct entry *entry, struct script_job *job)
{
	struct hotspot_process *hotspot = job->hotspot;
	struct jvm_entry jvm = { 0 };

	entry->is_asked = false;
	if (entry->hotspot)
		return; /* it was dropped and found again, and so asked twice */
	if (job->state == HOTSPOT_NOT_YET) {
		entry->ask_at_ns = clock_monotonic_ns() + ASK_AGAIN_NS;
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
		note_words(runtimes, entry, entry->early, entry->early_count / 2,
			   clock_monotonic_ns());
		log_debug("runtime", "interpreter", "pid=%u runtime=hotspot version=%s source=%s",
			  (unsigned)entry->identity.pid, entry->version_text,
			  jvm.roots.heaps ? "file" : "vm_structs");
	}
	drop_early(entry);
}

/* ---- code of .NET ---- */

/* Its generated code is found by address. */
static bool has_code(const struct entry *entry)
{
	return !entry->refused &&
	       (entry->layout.kind == RUNTIME_DOTNET || entry->layout.kind == RUNTIME_BEAM);
}

bool runtimes_has_code(const struct runtimes *runtimes, const struct process_identity *identity)
{
	const struct entry *entry = find_entry(runtimes, identity);

	return entry && (has_code(entry) || has_places(entry));
}

static bool is_known_code(const struct entry *entry, uint64_t address)
{
	if (entry->layout.kind == RUNTIME_BEAM)
		return entry->beam && beam_process_find(entry->beam, address);
	return entry->dotnet && (dotnet_process_find(entry->dotnet, address) ||
				 dotnet_process_is_nothing(entry->dotnet, address));
}

void runtimes_note_code(struct runtimes *runtimes, const struct process_identity *identity,
			uint64_t address, int64_t now_ns)
{
	struct entry *entry = find_entry(runtimes, identity);

	if (!entry)
		return;
	entry->used_at_ns = now_ns;
	if (has_places(entry))
		note_place(runtimes, entry, address, now_ns);
	if (!has_code(entry))
		return;
	if (is_known_code(entry, address) || entry->wanted_count == WANTED_MAX)
		return;
	for (size_t i = 0; i < entry->wanted_count; i++)
		if (entry->wanted[i] == address)
			return;
	mem_grow(entry->wanted, entry->wanted_count, entry->wanted_capacity);
	entry->wanted[entry->wanted_count++] = address;
}

/* Those of which nothing was found out meanwhile. */
static void sift_wanted(struct entry *entry)
{
	size_t count = 0;

	for (size_t i = 0; i < entry->wanted_count; i++)
		if (!is_known_code(entry, entry->wanted[i]))
			entry->wanted[count++] = entry->wanted[i];
	entry->wanted_count = count;
}

/* Has a look at a process that ran code of which nothing is known, or was not looked at yet. */
static void ask_dotnet(struct runtimes *runtimes, struct entry *entry, int64_t now_ns)
{
	struct script_job *job;

	if (!entry->dotnet || entry->refused || now_ns < entry->ask_at_ns)
		return;
	sift_wanted(entry);
	if (entry->is_read && !entry->wanted_count && now_ns < entry->look_again_at_ns)
		return;
	if (job_thread_is_full(runtimes->reader))
		return;
	job = script_job_new(&entry->identity);
	job->layout = entry->layout;
	job->dotnet = entry->dotnet;
	job->wanted = entry->wanted;
	job->wanted_count = entry->wanted_count;
	entry->asked_at_ns = now_ns;
	entry->dotnet = NULL;
	entry->wanted = NULL;
	entry->wanted_count = entry->wanted_capacity = 0;
	job_thread_put(runtimes->reader, &job->job, now_ns);
}

/* When to look again at what has been looked at. */
static void plan_look(struct entry *entry, int64_t took_ns)
{
	const struct dotnet_line *lines;
	int64_t now_ns = clock_monotonic_ns(), least_ns = took_ns * LOOK_ASKED_SHARE_DIVISOR;
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

static void take_dotnet(struct runtimes *runtimes, struct entry *entry, struct script_job *job)
{
	/* It was dropped meanwhile, and perhaps found again. */
	if (!entry || entry->dotnet) {
		drop_lines(runtimes, job->dotnet);
		return;
	}
	entry->dotnet = job->dotnet;
	job->dotnet = NULL;
	entry->ask_at_ns = clock_monotonic_ns() + ASK_AGAIN_NS;
	if (job->answer == DOTNET_NOT_YET)
		return;
	if (job->answer == DOTNET_UNKNOWN) {
		runtime_offsets_add(runtimes->offsets, RUNTIME_DOTNET, entry->version_text,
				    "unknown layout");
		refuse(runtimes, entry);
		return;
	}
	entry->is_read = true;
	put_lines(runtimes, entry->dotnet);
	plan_look(entry, job->took_ns);
}

/* ---- code of Erlang ---- */

/* Has a look at a process that ran code of which nothing is known, or was not looked at yet. */
static void ask_beam(struct runtimes *runtimes, struct entry *entry, int64_t now_ns)
{
	struct script_job *job;

	if (!entry->beam || entry->refused || now_ns < entry->ask_at_ns)
		return;
	sift_wanted(entry);
	if ((entry->is_read && !entry->wanted_count) || job_thread_is_full(runtimes->reader))
		return;
	job = script_job_new(&entry->identity);
	job->layout = entry->layout;
	job->beam = entry->beam;
	job->wanted = entry->wanted;
	job->wanted_count = entry->wanted_count;
	entry->beam = NULL;
	entry->wanted = NULL;
	entry->wanted_count = entry->wanted_capacity = 0;
	job_thread_put(runtimes->reader, &job->job, now_ns);
}

/* The kernel's program walks its stacks from now on. */
static void walk_beam(struct runtimes *runtimes, struct entry *entry)
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

static void take_beam(struct runtimes *runtimes, struct entry *entry, struct script_job *job)
{
	int64_t again_ns = LOOK_ASKED_SHARE_DIVISOR * job->took_ns;

	if (!entry || entry->beam) /* as in take_dotnet */
		return;
	entry->beam = job->beam;
	job->beam = NULL;
	if (job->beam_answer == BEAM_NOT_YET)
		again_ns = ASK_AGAIN_NS;
	entry->ask_at_ns = clock_monotonic_ns() + again_ns;
	if (job->beam_answer == BEAM_UNKNOWN) {
		runtime_offsets_add(runtimes->offsets, RUNTIME_BEAM, entry->version_text,
				    "unknown layout");
		refuse(runtimes, entry);
	} else if (job->beam_answer == BEAM_ANSWERED && !entry->is_read) {
		walk_beam(runtimes, entry);
	}
}

/* A runtime that starts has names soon, and may not be there for long. */
static int64_t hotspot_due_ns(const struct entry *entry, int64_t now_ns)
{
	if (entry->layout.kind != RUNTIME_HOTSPOT || entry->refused || entry->hotspot ||
	    now_ns - entry->asked_at_ns > HOTSPOT_START_NS)
		return INT64_MAX;
	return now_ns + ASK_AGAIN_NS;
}

/* Until it has answered once it is asked again and again. */
static int64_t beam_due_ns(const struct entry *entry, int64_t now_ns)
{
	if (entry->layout.kind != RUNTIME_BEAM || entry->refused || entry->is_read)
		return INT64_MAX;
	return now_ns + ASK_AGAIN_NS;
}

int runtimes_fd(const struct runtimes *runtimes)
{
	return job_thread_fd(runtimes->reader);
}

int64_t runtimes_due_ns(const struct runtimes *runtimes, int64_t now_ns)
{
	int64_t due_ns = INT64_MAX;

	for (size_t i = 0; i < runtimes->count; i++) {
		const struct entry *entry = runtimes->items[i];
		int64_t at_ns = beam_due_ns(entry, now_ns);

		due_ns = at_ns < due_ns ? at_ns : due_ns;
		at_ns = hotspot_due_ns(entry, now_ns);
		due_ns = at_ns < due_ns ? at_ns : due_ns;
		at_ns = INT64_MAX;
		if (entry->layout.kind != RUNTIME_DOTNET || entry->refused)
			continue;
		if (entry->dotnet && entry->is_read && !entry->wanted_count)
			at_ns = entry->look_again_at_ns;
		else if (entry->dotnet || now_ns - entry->asked_at_ns < LOOK_IS_STUCK_NS)
			at_ns = now_ns + LOOK_POLL_NS;
		due_ns = at_ns < due_ns ? at_ns : due_ns;
	}
	return due_ns;
}

static bool find_dotnet_code(const struct dotnet_process *dotnet, uint64_t address,
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

static void find_beam_code(const struct beam_process *beam, uint64_t address,
			   struct runtimes_code *ret)
{
	const struct beam_place *place = beam_process_find(beam, address);

	if (!place)
		return;
	ret->is_named = true;
	ret->function = place->function ? place->function : "[stub]";
	ret->file = place->file;
	ret->line = place->line;
}

bool runtimes_find_code(const struct runtimes *runtimes, const struct process_identity *identity,
			uint64_t address, struct runtimes_code *ret)
{
	const struct entry *entry = find_entry(runtimes, identity);

	if (!entry || !has_code(entry))
		return false;
	*ret = (struct runtimes_code){ .kind = entry->layout.kind, .file = "" };
	ret->function = entry->layout.kind == RUNTIME_BEAM ? "[beam: name not read]"
							   : "[dotnet: name not read]";
	if (entry->dotnet)
		return find_dotnet_code(entry->dotnet, address, ret);
	if (entry->beam)
		find_beam_code(entry->beam, address, ret);
	return entry->layout.kind == RUNTIME_BEAM;
}

static size_t bytes_of(const struct entry *entry)
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
		struct entry *entry = find_entry(runtimes, &job->identity);

		if (job->dotnet)
			take_dotnet(runtimes, entry, job);
		else if (job->beam)
			take_beam(runtimes, entry, job);
		else if (entry && !job->count)
			take_hotspot(runtimes, entry, job);
		for (size_t i = 0; entry && i < job->count; i++)
			take_item(runtimes, entry, &job->items[i]);
		script_job_free(job);
	}
}

void runtimes_update(struct runtimes *runtimes, int64_t now_ns)
{
	for (size_t i = 0; i < runtimes->count; i++) {
		ask_hotspot(runtimes, runtimes->items[i], now_ns);
		ask_dotnet(runtimes, runtimes->items[i], now_ns);
		ask_beam(runtimes, runtimes->items[i], now_ns);
		if (runtimes->items[i]->job)
			send_job(runtimes, runtimes->items[i], now_ns);
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
	const struct entry *entry = find_entry(runtimes, identity);
	uint32_t proof = (uint32_t)(words[1] >> 32);
	const struct script_code *code;

	if (!entry)
		return NULL;
	code = known_code(entry, key_of(entry, words[0]), proof);
	return code ? code : known_in_family(runtimes, entry, key_of(entry, words[0]), proof);
}

bool runtimes_is_noted(const struct runtimes *runtimes, const struct process_identity *identity,
		       uint64_t address)
{
	const struct entry *entry = find_entry(runtimes, identity);

	return entry && address - entry->jvm_low < entry->jvm_bytes;
}

/* ---- life ---- */

static int by_use(const void *a, const void *b)
{
	const struct entry *first = *(struct entry *const *)a, *second = *(struct entry *const *)b;

	return (first->used_at_ns < second->used_at_ns) - (first->used_at_ns > second->used_at_ns);
}

/* One that is not needed for long goes, too: its number may be another's by now. */
static bool is_over(const struct runtimes *runtimes, const struct entry *entry, int64_t now_ns)
{
	if (now_ns - entry->used_at_ns >= UNUSED_KEEP_NS)
		return true;
	return entry->used_at_ns < runtimes->swept_at_ns && kill((pid_t)entry->identity.pid, 0) &&
	       errno == ESRCH;
}

/* Unless another image of that number is read, too: its exec, or a new process. */
static void drop(struct runtimes *runtimes, const struct entry *entry)
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
		struct entry *entry = runtimes->items[i];

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
			entry_free(runtimes, entry);
			continue;
		}
		bytes += bytes_of(entry);
		add_entry(runtimes, entry);
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
		entry_free(runtimes, runtimes->items[i]);
	free(runtimes->items);
	idmap_free(&runtimes->map);
	free(runtimes);
}

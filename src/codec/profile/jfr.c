/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/profile/jfr.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/profile/jfr_chunk.h"

#define NS_PER_MS 1000000
#define NS_PER_S 1000000000ll
#define INTERVAL_DEFAULT_NS (10 * NS_PER_MS) /* async-profiler's */
#define TEXT_BYTES 32			     /* besides its own */
#define PERIOD_DEFAULT_NS (20 * NS_PER_MS)   /* the JDK's */

static const struct kind {
	const char *name;	 /* of the profile */
	const char *types[2][2]; /* name and unit of each value; the second may be none */
	const char *period[2];
} kinds[JFR_KINDS] = {
	[JFR_CPU] = { "process_cpu", { { "cpu", "nanoseconds" } }, { "cpu", "nanoseconds" } },
	[JFR_WALL] = { "wall", { { "wall", "nanoseconds" } }, { "wall", "nanoseconds" } },
	[JFR_NEW_TLAB] = { "memory",
			   { { "alloc_in_new_tlab_objects", "count" },
			     { "alloc_in_new_tlab_bytes", "bytes" } },
			   { "space", "bytes" } },
	[JFR_OUTSIDE_TLAB] = { "memory",
			       { { "alloc_outside_tlab_objects", "count" },
				 { "alloc_outside_tlab_bytes", "bytes" } },
			       { "space", "bytes" } },
	[JFR_ALLOCATION] = { "memory",
			     { { "alloc_sample_objects", "count" },
			       { "alloc_sample_bytes", "bytes" } },
			     { "space", "bytes" } },
	[JFR_MUTEX] = { "mutex",
			{ { "contentions", "count" }, { "delay", "nanoseconds" } },
			{ "mutex", "count" } },
	[JFR_BLOCK] = { "block",
			{ { "contentions", "count" }, { "delay", "nanoseconds" } },
			{ "block", "count" } },
	[JFR_LIVE] = { "memory", { { "live", "count" } }, { "objects", "count" } },
	[JFR_MALLOC] = { "memory",
			 { { "malloc_objects", "count" }, { "malloc_bytes", "bytes" } },
			 { "space", "bytes" } },
};

/* What an event weighs. */
enum weight {
	WEIGHT_INTERVAL, /* of the engine, or of the event's own setting */
	WEIGHT_WALL,	 /* the same, times the field `samples` */
	WEIGHT_ONE,	 /* one, and what the field says */
	WEIGHT_DURATION, /* one, and how long it took */
};

static const struct source {
	const char *event;
	enum jfr_kind kind;
	enum weight weight;
	const char *field;
} sources[] = {
	{ "jdk.ExecutionSample", JFR_CPU, WEIGHT_INTERVAL, NULL },
	{ "jdk.NativeMethodSample", JFR_WALL, WEIGHT_INTERVAL, NULL },
	{ "profiler.WallClockSample", JFR_WALL, WEIGHT_WALL, "samples" },
	{ "jdk.ObjectAllocationInNewTLAB", JFR_NEW_TLAB, WEIGHT_ONE, "tlabSize" },
	{ "jdk.ObjectAllocationOutsideTLAB", JFR_OUTSIDE_TLAB, WEIGHT_ONE, "allocationSize" },
	{ "jdk.ObjectAllocationSample", JFR_ALLOCATION, WEIGHT_ONE, "weight" },
	{ "jdk.JavaMonitorEnter", JFR_MUTEX, WEIGHT_DURATION, "duration" },
	{ "jdk.ThreadPark", JFR_BLOCK, WEIGHT_DURATION, "duration" },
	{ "profiler.LiveObject", JFR_LIVE, WEIGHT_ONE, NULL },
	{ "jdk.OldObjectSample", JFR_LIVE, WEIGHT_ONE, NULL },
	{ "profiler.Malloc", JFR_MALLOC, WEIGHT_ONE, "size" },
};
#define SOURCES (sizeof(sources) / sizeof(sources[0]))

struct decoder {
	struct jfr *jfr;
	struct jfr_chunk chunk;
	size_t elements_max;
	struct budget *budget;
	uint32_t classes[SOURCES];    /* of the chunk at hand */
	int64_t period_ns[SOURCES];   /* as the settings say; 0: they do not */
	int64_t interval_ns, wall_ns; /* async-profiler's; 0: it did not write this */
	bool is_wall;		      /* its ExecutionSamples are */
	int64_t start_ns, end_ns;     /* of all chunks */
	struct err *err;
};

bool jfr_is(struct slice bytes)
{
	return bytes.len >= 4 && !memcmp(bytes.data, "FLR\0", 4);
}

const char *jfr_name(enum jfr_kind kind)
{
	return kinds[kind].name;
}

/* "10 ms", "1 s", "5000000", "20us"; 0 when it is none of these. */
static int64_t interval_of(struct slice text)
{
	static const struct {
		const char *unit;
		int64_t ns;
	} units[] = {
		{ "", 1 }, { "ns", 1 }, { "us", 1000 }, { "ms", NS_PER_MS }, { "s", NS_PER_S }
	};
	size_t digits = 0;
	struct slice unit;
	uint64_t number;
	int64_t ns;

	while (digits < text.len && text.data[digits] >= '0' && text.data[digits] <= '9')
		digits++;
	if (!slice_parse_u64(slice_from(text.data, digits), &number) || number > INT64_MAX)
		return 0;
	unit = slice_trim(slice_tail(text, digits));
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (slice_is(unit, units[i].unit))
			return __builtin_mul_overflow((int64_t)number, units[i].ns, &ns) ? 0 : ns;
	return 0;
}

/* jdk.ActiveSetting{ id of an event, name, value } */
struct setting {
	int64_t id;
	struct slice name, value;
};

static struct setting read_setting(struct jfr_reader *reader, uint32_t class)
{
	const struct jfr_chunk *chunk = reader->chunk;
	const struct jfr_class *is = &chunk->classes[class];
	struct setting setting = { .name = { "", 0 }, .value = { "", 0 } };

	for (uint32_t i = 0; i < is->field_count && !reader->failed; i++) {
		const struct jfr_field *field = &chunk->fields[is->field_first + i];
		struct jfr_value value = jfr_read(reader, field);

		if (slice_is(field->name, "id"))
			setting.id = value.number;
		else if (slice_is(field->name, "name"))
			setting.name = value.text;
		else if (slice_is(field->name, "value"))
			setting.value = value.text;
	}
	return setting;
}

static void apply_setting(struct decoder *decoder, const struct setting *setting)
{
	int64_t ns = interval_of(setting->value);

	if (slice_is(setting->name, "interval"))
		decoder->interval_ns = ns ? ns : INTERVAL_DEFAULT_NS;
	else if (slice_is(setting->name, "wall"))
		decoder->wall_ns = ns;
	else if (slice_is(setting->name, "event"))
		decoder->is_wall = slice_is(setting->value, "wall");
	else if (slice_is(setting->name, "period"))
		for (size_t i = 0; i < SOURCES; i++)
			if (decoder->classes[i] != JFR_NO_CLASS &&
			    decoder->chunk.classes[decoder->classes[i]].id == setting->id)
				decoder->period_ns[i] = ns;
}

static int read_settings(struct decoder *decoder)
{
	uint32_t settings = jfr_chunk_class(&decoder->chunk, "jdk.ActiveSetting"), class;
	struct jfr_reader reader;
	size_t at = 0;

	while (jfr_chunk_event(&decoder->chunk, &at, &class, &reader)) {
		struct setting setting;

		if (class == JFR_NO_CLASS || class != settings)
			continue;
		setting = read_setting(&reader, class);
		if (reader.failed)
			break;
		apply_setting(decoder, &setting);
	}
	return reader.failed ? -(int)decoder->err->code : 0;
}

/* Texts of constants, made once each and kept in them. */

/* A Symbol, or what else has one text. */
static struct slice text_of(struct jfr_chunk *chunk, const struct jfr_field *field,
			    struct jfr_value value, const char *name)
{
	const struct jfr_constant *constant = jfr_constant_of(chunk, field, value.number);

	if (!constant)
		return value.text;
	return jfr_constant_field(chunk, constant, name, NULL).text;
}

static struct slice class_text(struct jfr_chunk *chunk, struct jfr_constant *class)
{
	const struct jfr_field *field;
	struct jfr_value name;

	if (!class)
		return SLICE_LITERAL("");
	if (!class->text.data) {
		name = jfr_constant_field(chunk, class, "name", &field);
		class->text = text_of(chunk, field, name, "string");
	}
	return class->text;
}

/* "a/b/C.m", or "m" of a class without a name. Many methods can be of one class's long name. */
static struct slice method_text(struct jfr_reader *reader, struct jfr_constant *method)
{
	struct jfr_chunk *chunk = reader->chunk;
	const struct jfr_field *field;
	struct jfr_value value;
	struct slice class, name;
	struct strbuf text = { 0 };

	if (method->text.data)
		return method->text;
	value = jfr_constant_field(chunk, method, "type", &field);
	class = class_text(chunk, jfr_constant_of(chunk, field, value.number));
	value = jfr_constant_field(chunk, method, "name", &field);
	name = text_of(chunk, field, value, "string");
	if (!jfr_pay(reader, class.len + name.len + TEXT_BYTES))
		return SLICE_LITERAL("");
	strbuf_add_slice(&text, class);
	if (class.len && name.len)
		strbuf_add_byte(&text, '.');
	strbuf_add_slice(&text, name);
	method->text = arena_copy(&chunk->arena, strbuf_slice(&text));
	strbuf_free(&text);
	return method->text;
}

/* A thread by its Java name, else the system's. */
static struct slice thread_text(struct jfr_chunk *chunk, struct jfr_constant *thread)
{
	if (!thread)
		return SLICE_LITERAL("");
	if (!thread->text.data) {
		thread->text = jfr_constant_field(chunk, thread, "javaName", NULL).text;
		if (!thread->text.len)
			thread->text = jfr_constant_field(chunk, thread, "osName", NULL).text;
	}
	return thread->text;
}

/* Stacks. */

static void push_frame(struct decoder *decoder, struct stack_builder *into,
		       struct jfr_reader *reader, uint32_t class)
{
	struct jfr_chunk *chunk = &decoder->chunk;
	const struct jfr_class *is = &chunk->classes[class];
	struct stack_builder_frame frame = { .name = SLICE_LITERAL("[unknown]") };
	struct slice type = { "", 0 };

	for (uint32_t i = 0; i < is->field_count && !reader->failed; i++) {
		const struct jfr_field *field = &chunk->fields[is->field_first + i];
		struct jfr_value value = jfr_read(reader, field);
		struct jfr_constant *constant = jfr_constant_of(chunk, field, value.number);

		if (slice_is(field->name, "method") && constant)
			frame.name = method_text(reader, constant);
		else if (slice_is(field->name, "lineNumber") && value.number > 0)
			frame.line = value.number;
		else if (slice_is(field->name, "type"))
			type = text_of(chunk, field, value, "description");
	}
	if (!frame.name.len)
		frame.name = SLICE_LITERAL("[unknown]");
	if (slice_is(type, "Kernel"))
		frame.mapping = SLICE_LITERAL("[kernel]");
	stack_builder_push(into, &frame);
}

/* StackTrace{ truncated, frames }, leaf first. */
static bool read_stack(struct decoder *decoder, struct stack_builder *into,
		       const struct jfr_constant *stack)
{
	struct jfr_chunk *chunk = &decoder->chunk;
	const struct jfr_class *is = &chunk->classes[stack->class];
	struct jfr_reader reader = { .chunk = chunk, .at = stack->at, .end = chunk->bytes.len };
	struct stack_builder_frame cut = { .name = SLICE_LITERAL("[truncated: by the recording]") };
	bool truncated = false;

	for (uint32_t i = 0; i < is->field_count && !reader.failed; i++) {
		const struct jfr_field *field = &chunk->fields[is->field_first + i];
		uint64_t frames;

		if (!slice_is(field->name, "frames") || !field->is_array || field->is_constant ||
		    field->class == JFR_NO_CLASS) {
			truncated |= jfr_read(&reader, field).number != 0 &&
				     slice_is(field->name, "truncated");
			continue;
		}
		frames = jfr_read_count(&reader);
		for (uint64_t k = 0; k < frames && !reader.failed; k++)
			push_frame(decoder, into, &reader, field->class);
	}
	if (truncated)
		stack_builder_push(into, &cut);
	return !reader.failed;
}

/* A stack is read once for each kind; later samples have the frames of the first one with it. */
static bool push_stack(struct decoder *decoder, struct jfr_reader *reader, enum jfr_kind kind,
		       struct jfr_constant *stack)
{
	struct stack_builder *into = &decoder->jfr->built[kind];
	const struct pprof *profile = &into->profile;
	const struct pprof_sample *sample;

	if (!stack->samples) {
		if (!jfr_pay(reader, JFR_KINDS * sizeof(*stack->samples)))
			return false;
		stack->samples = arena_new_array(&decoder->chunk.arena, uint32_t, JFR_KINDS);
		memset(stack->samples, 0, JFR_KINDS * sizeof(*stack->samples));
	}
	if (!stack->samples[kind]) { /* by number from 1, as the sample that is being made */
		stack->samples[kind] = (uint32_t)profile->samples.count + 1;
		return read_stack(decoder, into, stack);
	}
	if (into->full)
		return true;
	sample = &profile->samples.data[stack->samples[kind] - 1];
	for (uint32_t i = 0; i < sample->location_count; i++)
		stack_builder_push_id(into, profile->location_ids.data[sample->location_first + i]);
	return true;
}

/* Events. */

struct event {
	struct jfr_constant *stack;
	struct jfr_constant *thread;
	int64_t amount; /* of the field that weighs */
};

static struct event read_event(struct jfr_reader *reader, uint32_t class, const char *weight)
{
	struct jfr_chunk *chunk = reader->chunk;
	const struct jfr_class *is = &chunk->classes[class];
	struct event event = { .amount = 0 };

	for (uint32_t i = 0; i < is->field_count && !reader->failed; i++) {
		const struct jfr_field *field = &chunk->fields[is->field_first + i];
		struct jfr_value value = jfr_read(reader, field);
		struct jfr_constant *constant = jfr_constant_of(chunk, field, value.number);

		if (slice_is(field->name, "stackTrace"))
			event.stack = constant;
		else if (slice_is(field->name, "sampledThread"))
			event.thread = constant;
		else if (slice_is(field->name, "eventThread") && !event.thread)
			event.thread = constant;
		if (weight && slice_is(field->name, weight))
			event.amount = value.number;
	}
	return event;
}

static struct stack_builder *builder_of(struct decoder *decoder, enum jfr_kind kind)
{
	struct stack_builder *built = &decoder->jfr->built[kind];
	struct pprof *profile = &built->profile;

	if (built->strings)
		return built;
	stack_builder_init(built, decoder->elements_max, decoder->budget);
	for (int i = 0; i < 2 && kinds[kind].types[i][0]; i++)
		stack_builder_type(built, kinds[kind].types[i][0], kinds[kind].types[i][1]);
	profile->period_type.type =
		pprof_builder_string(built->strings, slice_of(kinds[kind].period[0]));
	profile->period_type.unit =
		pprof_builder_string(built->strings, slice_of(kinds[kind].period[1]));
	profile->period = 1;
	return built;
}

static int64_t ticks_to_ns(const struct decoder *decoder, int64_t ticks)
{
	double ns = (double)ticks * NS_PER_S / (double)decoder->chunk.ticks_per_s;

	return ns <= 0 ? 0 : ns < 9e18 ? (int64_t)ns : INT64_MAX;
}

/* What a sample of a source stands for. */
static int64_t interval_ns(const struct decoder *decoder, size_t source)
{
	if (sources[source].weight == WEIGHT_WALL && decoder->wall_ns)
		return decoder->wall_ns;
	if (decoder->period_ns[source])
		return decoder->period_ns[source];
	return decoder->interval_ns ? decoder->interval_ns : PERIOD_DEFAULT_NS;
}

static void weigh(const struct decoder *decoder, size_t source, int64_t amount, int64_t *values)
{
	int64_t ns = interval_ns(decoder, source);

	values[0] = 1;
	values[1] = amount > 0 ? amount : 0;
	if (sources[source].weight == WEIGHT_INTERVAL)
		values[0] = ns;
	else if (sources[source].weight == WEIGHT_WALL &&
		 __builtin_mul_overflow(ns, amount > 1 ? amount : 1, &values[0]))
		values[0] = INT64_MAX;
	else if (sources[source].weight == WEIGHT_DURATION)
		values[1] = ticks_to_ns(decoder, amount);
}

static bool add_event(struct decoder *decoder, struct jfr_reader *reader, size_t source,
		      uint32_t class)
{
	struct event event = read_event(reader, class, sources[source].field);
	enum jfr_kind kind = sources[source].kind;
	struct stack_builder *into;
	struct slice thread;
	int64_t values[2];

	if (reader->failed || !event.stack)
		return !reader->failed; /* events of the whole process have no stack */
	if (!source && decoder->is_wall)
		kind = JFR_WALL;
	into = builder_of(decoder, kind);
	into->stack_count = 0;
	if (!push_stack(decoder, reader, kind, event.stack))
		return false;
	weigh(decoder, source, event.amount, values);
	stack_builder_sample(into, false, values);
	thread = thread_text(&decoder->chunk, event.thread);
	if (thread.len && !into->full)
		stack_builder_label(into, "thread_name", thread);
	if (kind == JFR_CPU || kind == JFR_WALL)
		into->profile.period = interval_ns(decoder, source);
	return true;
}

static int read_events(struct decoder *decoder)
{
	struct jfr_reader reader;
	uint32_t class;
	size_t at = 0;

	while (jfr_chunk_event(&decoder->chunk, &at, &class, &reader)) {
		size_t source = 0;

		if (class == JFR_NO_CLASS)
			continue;
		while (source < SOURCES && decoder->classes[source] != class)
			source++;
		if (source < SOURCES && !add_event(decoder, &reader, source, class))
			return -(int)decoder->err->code;
	}
	return reader.failed ? -(int)decoder->err->code : 0;
}

static int read_chunk(struct decoder *decoder, struct slice bytes, size_t number)
{
	int rc = jfr_chunk_open(&decoder->chunk, bytes, number, decoder->elements_max,
				decoder->budget, decoder->err);

	for (size_t i = 0; i < SOURCES && !rc; i++)
		decoder->classes[i] = jfr_chunk_class(&decoder->chunk, sources[i].event);
	if (!rc)
		rc = read_settings(decoder);
	if (!rc)
		rc = read_events(decoder);
	if (!rc) {
		int64_t start_ns = decoder->chunk.start_ns, end_ns;

		if (__builtin_add_overflow(start_ns, decoder->chunk.duration_ns, &end_ns))
			end_ns = start_ns;
		if (!number || start_ns < decoder->start_ns)
			decoder->start_ns = start_ns;
		if (end_ns > decoder->end_ns)
			decoder->end_ns = end_ns;
	}
	jfr_chunk_free(&decoder->chunk);
	return rc;
}

static int read_chunks(struct decoder *decoder, struct slice bytes)
{
	size_t number = 0;
	uint64_t len;
	int rc = 0;

	for (; !rc && bytes.len; number++) {
		rc = jfr_chunk_length(bytes, number, &len, decoder->err);
		if (rc)
			break;
		decoder->jfr->unfinished = !len || len > bytes.len;
		if (decoder->jfr->unfinished && !number)
			return err_set(decoder->err, ERR_INVALID,
				       "JFR: chunk 0: it is not finished, or cut short");
		if (decoder->jfr->unfinished)
			break;
		if (len < 68)
			return err_set(decoder->err, ERR_INVALID,
				       "JFR: chunk %zu: of impossible length", number);
		rc = read_chunk(decoder, slice_from(bytes.data, (size_t)len), number);
		bytes = slice_tail(bytes, (size_t)len);
	}
	return rc;
}

int jfr_decode(struct slice bytes, size_t elements_max, struct budget *budget, struct jfr *ret,
	       struct err *err)
{
	struct err own_err = { 0 };
	struct decoder *decoder = mem_new(struct decoder);
	bool any = false;
	int rc;

	*ret = (struct jfr){ .unfinished = false };
	decoder->jfr = ret;
	decoder->elements_max = elements_max;
	decoder->budget = budget;
	decoder->err = err ? err : &own_err;
	rc = read_chunks(decoder, bytes);
	for (int i = 0; i < JFR_KINDS && !rc; i++) {
		struct pprof *profile = &ret->built[i].profile;

		if (!ret->built[i].strings)
			continue;
		rc = stack_builder_check(&ret->built[i], "JFR", decoder->err);
		profile->time_nanos = decoder->start_ns;
		profile->duration_nanos = decoder->end_ns > decoder->start_ns
						  ? decoder->end_ns - decoder->start_ns
						  : 0;
		any = true;
	}
	if (!rc && !any)
		rc = err_set(decoder->err, ERR_INVALID, "JFR: no event with a stack");
	free(decoder);
	return rc;
}

void jfr_free(struct jfr *jfr)
{
	for (int i = 0; i < JFR_KINDS; i++)
		if (jfr->built[i].strings)
			stack_builder_free(&jfr->built[i]);
}

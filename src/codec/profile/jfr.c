/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/profile/jfr.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "codec/profile/jfr_chunk.h"
#include "codec/profile/jfr_labels.h"

#define NS_PER_MS 1000000
#define NS_PER_S 1000000000ll
#define INTERVAL_DEFAULT_NS (10 * NS_PER_MS) /* async-profiler's */
#define TEXT_BYTES 32			     /* besides its own */
#define PERIOD_DEFAULT_NS (20 * NS_PER_MS)   /* the JDK's */
#define INTERVAL_MS_MAX 1000000
#define ATTRIBUTES_MAX 16 /* of an event, that become labels */
#define LABEL_NAME_BYTES 256
#define ATTRIBUTE_CLASS "profiler.types.AttributeValue"

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
	[JFR_SAMPLED] = { "memory",
			  { { "alloc-samples", "count" }, { "alloc-size", "bytes" } },
			  { "space", "bytes" } },
	[JFR_HEAP] = { "memory",
		       { { "heap-live-samples", "count" }, { "heap-live-size", "bytes" } },
		       { "space", "bytes" } },
	[JFR_MALLOC] = { "memory",
			 { { "malloc_objects", "count" }, { "malloc_bytes", "bytes" } },
			 { "space", "bytes" } },
};

/* What an event weighs. */
enum weight {
	WEIGHT_INTERVAL, /* of the engine, or of the event's own setting */
	WEIGHT_WALL,	 /* that of the engine `wall`, times what the field says */
	WEIGHT_TIMES,	 /* the interval, times what the field says */
	WEIGHT_ONE,	 /* one, and what the field says */
	WEIGHT_SAMPLED,	 /* the field `weight`, and that times what the field says */
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
	/* Datadog's Java profiler; what is allocated as its tracers of other languages call it, for
	 * a recording may have the JDK's own samples of it, too. */
	{ "datadog.ExecutionSample", JFR_CPU, WEIGHT_TIMES, "weight" },
	{ "datadog.MethodSample", JFR_WALL, WEIGHT_TIMES, "weight" },
	{ "datadog.ObjectSample", JFR_SAMPLED, WEIGHT_SAMPLED, "size" },
	{ "datadog.HeapLiveObject", JFR_HEAP, WEIGHT_SAMPLED, "size" },
};
#define SOURCES (sizeof(sources) / sizeof(sources[0]))
#define SOURCE_EXECUTION 0u /* in this table */

/* What makes samples of a chunk one: many events of a recording differ in their time alone. */
struct sample_key {
	const struct jfr_constant *stack, *thread;
	int64_t numbers[6]; /* of context, spans and trace */
};

struct merging {
	struct sample_key *keys;
	uint32_t *samples; /* of the kind's profile, by key */
	size_t count, keys_capacity, samples_capacity;
	struct idmap by_key;
};
/* When a chunk has Datadog's samples of CPU time. */
struct span {
	int64_t start_ns, end_ns;
};
#define SPANS_MAX 64u

#define MERGING_COST_BYTES (2 * (sizeof(struct sample_key) + sizeof(uint32_t)) + 16)

struct decoder {
	struct jfr *jfr;
	struct merging merging[JFR_KINDS]; /* of the chunk at hand */
	struct span spans[SPANS_MAX];
	size_t spans_count;
	bool is_covered; /* the chunk at hand, by most of its time, by one of these */
	bool has_times;	 /* start_ns and end_ns are */
	const struct jfr_labels *labels; /* NULL: none came with it */
	struct jfr_chunk chunk;
	size_t elements_max;
	struct budget *budget;
	uint32_t classes[SOURCES];    /* of the chunk at hand */
	int64_t period_ns[SOURCES];   /* as the settings say; 0: they do not */
	int64_t interval_ns, wall_ns; /* async-profiler's; 0: it did not write this */
	bool is_wall;		      /* its ExecutionSamples are */
	bool has_default_state;	      /* that of its samples of CPU time */
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

/* datadog.DatadogProfilerConfig{ cpuInterval, wallInterval, ... }, in milliseconds. */
static void apply_config(struct decoder *decoder, struct jfr_reader *reader, uint32_t class)
{
	const struct jfr_chunk *chunk = reader->chunk;
	const struct jfr_class *is = &chunk->classes[class];

	for (uint32_t i = 0; i < is->field_count && !reader->failed; i++) {
		const struct jfr_field *field = &chunk->fields[is->field_first + i];
		int64_t ms = jfr_read(reader, field).number;
		struct slice of = slice_is(field->name, "cpuInterval")
					  ? SLICE_LITERAL("datadog.ExecutionSample")
				  : slice_is(field->name, "wallInterval")
					  ? SLICE_LITERAL("datadog.MethodSample")
					  : SLICE_LITERAL("");

		for (size_t k = 0; ms > 0 && ms <= INTERVAL_MS_MAX && k < SOURCES; k++)
			if (slice_is(of, sources[k].event))
				decoder->period_ns[k] = ms * NS_PER_MS;
	}
}

static int read_settings(struct decoder *decoder)
{
	uint32_t settings = jfr_chunk_class(&decoder->chunk, "jdk.ActiveSetting"), class;
	uint32_t config = jfr_chunk_class(&decoder->chunk, "datadog.DatadogProfilerConfig");
	struct jfr_reader reader;
	size_t at = 0;

	while (jfr_chunk_event(&decoder->chunk, &at, &class, &reader)) {
		struct setting setting;

		if (class == JFR_NO_CLASS || (class != settings && class != config))
			continue;
		if (class == config) {
			apply_config(decoder, &reader, class);
			continue;
		}
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

/* A named value of the program's own, from Datadog. */
struct attribute {
	struct slice name, value;
};

struct event {
	struct jfr_constant *stack;
	struct jfr_constant *thread;
	struct slice state; /* of the thread */
	int64_t amount;	    /* of the field that weighs */
	double weight;
	int64_t context, span, span_name, root_span, trace_high, trace_low; /* 0: none */
	struct attribute attributes[ATTRIBUTES_MAX];
	size_t attributes_count;
};

static void take_constant(struct event *event, struct jfr_chunk *chunk,
			  const struct jfr_field *field, struct jfr_constant *constant)
{
	struct slice text;

	if (slice_is(field->name, "stackTrace")) {
		event->stack = constant;
	} else if (slice_is(field->name, "sampledThread")) {
		event->thread = constant;
	} else if (slice_is(field->name, "eventThread")) {
		event->thread = event->thread ? event->thread : constant;
	} else if (slice_is(field->name, "state")) {
		event->state = jfr_constant_field(chunk, constant, "name", NULL).text;
	} else if (slice_is(chunk->classes[constant->class].name, ATTRIBUTE_CLASS) &&
		   event->attributes_count < ATTRIBUTES_MAX) {
		text = jfr_constant_field(chunk, constant, "value", NULL).text;
		if (text.len)
			event->attributes[event->attributes_count++] =
				(struct attribute){ field->name, text };
	}
}

static void take_number(struct event *event, struct slice name, struct jfr_value value)
{
	const struct {
		const char *name;
		int64_t *number;
	} numbers[] = {
		{ "contextId", &event->context },    { "spanId", &event->span },
		{ "spanName", &event->span_name },   { "localRootSpanId", &event->root_span },
		{ "traceIdHi", &event->trace_high }, { "traceIdLo", &event->trace_low }
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (slice_is(name, numbers[i].name))
			*numbers[i].number = value.number;
	if (slice_is(name, "weight"))
		event->weight = value.real;
}

static struct event read_event(struct jfr_reader *reader, uint32_t class, const char *weight)
{
	struct jfr_chunk *chunk = reader->chunk;
	const struct jfr_class *is = &chunk->classes[class];
	struct event event = { .amount = 0 };

	for (uint32_t i = 0; i < is->field_count && !reader->failed; i++) {
		const struct jfr_field *field = &chunk->fields[is->field_first + i];
		struct jfr_value value = jfr_read(reader, field);
		struct jfr_constant *constant = jfr_constant_of(chunk, field, value.number);

		if (constant)
			take_constant(&event, chunk, field, constant);
		else
			take_number(&event, field->name, value);
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

/* What a sample of a source stands for, as one of this kind. */
static int64_t interval_ns(const struct decoder *decoder, size_t source, enum jfr_kind kind)
{
	bool is_of_wall = sources[source].weight == WEIGHT_WALL ||
			  (source == SOURCE_EXECUTION && kind == JFR_WALL && !decoder->is_wall);

	if (is_of_wall && decoder->wall_ns)
		return decoder->wall_ns;
	if (decoder->period_ns[source])
		return decoder->period_ns[source];
	return decoder->interval_ns ? decoder->interval_ns : PERIOD_DEFAULT_NS;
}

/* The whole number nearest to one that is not negative. */
static int64_t whole(double number)
{
	return !(number > 0) ? 0 : number < 9e18 ? (int64_t)(number + 0.5) : INT64_MAX;
}

static void weigh(const struct decoder *decoder, size_t source, enum jfr_kind kind,
		  const struct event *event, int64_t *values)
{
	int64_t ns = interval_ns(decoder, source, kind),
		amount = event->amount > 0 ? event->amount : 0;

	values[0] = 1;
	values[1] = amount;
	switch (sources[source].weight) {
	case WEIGHT_INTERVAL:
		values[0] = ns;
		break;
	case WEIGHT_WALL:
	case WEIGHT_TIMES:
		if (__builtin_mul_overflow(ns, amount > 1 ? amount : 1, &values[0]))
			values[0] = INT64_MAX;
		break;
	case WEIGHT_SAMPLED:
		values[0] = event->weight > 1 ? whole(event->weight) : 1;
		values[1] = whole((double)amount * (event->weight > 1 ? event->weight : 1));
		break;
	case WEIGHT_DURATION:
		values[1] = ticks_to_ns(decoder, amount);
		break;
	case WEIGHT_ONE:
		break;
	}
}

static void label(struct stack_builder *into, const char *name, struct slice text)
{
	if (text.len && !into->full)
		stack_builder_label(into, name, text);
}

static void label_named(struct stack_builder *into, struct slice name, struct slice text)
{
	char key[LABEL_NAME_BYTES];

	if (!name.len || name.len >= sizeof(key))
		return;
	memcpy(key, name.data, name.len);
	key[name.len] = 0;
	label(into, key, text);
}

static void label_number(struct stack_builder *into, const char *name, int64_t number)
{
	if (number && !into->full)
		stack_builder_label_number(into, name, number);
}

static void label_hex(struct stack_builder *into, const char *name, uint64_t high, uint64_t low,
		      bool is_wide)
{
	char text[2 * 16 + 1];
	int len = is_wide ? snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64, high, low)
			  : snprintf(text, sizeof(text), "%016" PRIx64, low);

	if (high || low)
		label(into, name, slice_from(text, (size_t)len));
}

/*
 * As Pyroscope calls them: labels that the program has set, and the span that it was in. True if
 * the program names the thread, too.
 */
static bool add_context(const struct decoder *decoder, struct stack_builder *into,
			const struct event *event)
{
	struct slice name, value;
	bool names_thread = false;
	size_t at = 0;

	while (jfr_labels_next(decoder->labels, event->context, &at, &name, &value)) {
		label_named(into, name, value);
		names_thread |= slice_is(name, "thread_name");
	}
	label_hex(into, "profile_id", 0, (uint64_t)event->span, false);
	label(into, "span_name", jfr_labels_text(decoder->labels, event->span_name));
	label_hex(into, "trace_id", (uint64_t)event->trace_high, (uint64_t)event->trace_low, true);
	return names_thread;
}

static void add_labels(struct decoder *decoder, struct stack_builder *into,
		       const struct event *event)
{
	if (!decoder->labels || !add_context(decoder, into, event))
		label(into, "thread_name", thread_text(&decoder->chunk, event->thread));
	if (!decoder->labels && event->root_span) {
		/* As in the pprof of Datadog's other tracers. */
		label_number(into, "span id", event->span);
		label_number(into, "local root span id", event->root_span);
	}
	for (size_t i = 0; i < event->attributes_count; i++)
		label_named(into, event->attributes[i].name, event->attributes[i].value);
}

static struct sample_key key_of(const struct event *event)
{
	return (struct sample_key){ .stack = event->stack,
				    .thread = event->thread,
				    .numbers = { event->context, event->span, event->span_name,
						 event->root_span, event->trace_high,
						 event->trace_low } };
}

static bool is_same_sample(const void *context, uint32_t id, const void *key)
{
	const struct merging *merging = context;

	return !memcmp(&merging->keys[id], key, sizeof(struct sample_key));
}

/* True if there is a sample that differs in values alone: these are added to it. */
static bool merge(struct merging *merging, struct stack_builder *into, const struct sample_key *key,
		  const int64_t *values)
{
	uint32_t found = idmap_find(&merging->by_key, hash_bytes(key, sizeof(*key)), is_same_sample,
				    merging, key);
	struct pprof *profile = &into->profile;
	const struct pprof_sample *sample;

	if (found == IDMAP_NONE)
		return false;
	sample = &profile->samples.data[merging->samples[found]];
	for (uint32_t i = 0; i < sample->value_count; i++) {
		int64_t *sum = &profile->values.data[sample->value_first + i];

		if (__builtin_add_overflow(*sum, values[i], sum))
			*sum = INT64_MAX;
	}
	return true;
}

static bool remember(struct merging *merging, struct jfr_reader *reader,
		     const struct sample_key *key, size_t sample)
{
	size_t known = merging->count;

	if (!jfr_pay(reader, MERGING_COST_BYTES))
		return false;
	mem_grow(merging->keys, merging->count, merging->keys_capacity);
	mem_grow(merging->samples, known, merging->samples_capacity);
	idmap_add(&merging->by_key, hash_bytes(key, sizeof(*key)), (uint32_t)merging->count);
	merging->samples[merging->count] = (uint32_t)sample;
	merging->keys[merging->count++] = *key;
	return true;
}

static bool add_sample(struct decoder *decoder, struct jfr_reader *reader, size_t source,
		       enum jfr_kind kind, const struct event *event)
{
	struct stack_builder *into = builder_of(decoder, kind);
	struct sample_key key = key_of(event);
	int64_t values[2];

	weigh(decoder, source, kind, event, values);
	if (!event->attributes_count && merge(&decoder->merging[kind], into, &key, values))
		return true;
	into->stack_count = 0;
	if (!push_stack(decoder, reader, kind, event->stack))
		return false;
	stack_builder_sample(into, false, values);
	add_labels(decoder, into, event);
	if (kind == JFR_CPU || kind == JFR_WALL)
		into->profile.period = interval_ns(decoder, source, kind);
	return into->full || event->attributes_count ||
	       remember(&decoder->merging[kind], reader, &key, into->profile.samples.count - 1);
}

/*
 * The JDK takes threads that run. async-profiler's engine for wall time takes all of them: alone,
 * its samples of those that run tell of the CPU, too; beside an engine for CPU time, whose samples
 * have no state (2.10 and later) or the one of running (before), its own are told by their state.
 */
static bool add_execution(struct decoder *decoder, struct jfr_reader *reader,
			  const struct event *event)
{
	bool sleeps = slice_is(event->state, "STATE_SLEEPING");
	bool is_wall = decoder->is_wall || sleeps ||
		       (decoder->wall_ns && decoder->has_default_state &&
			!slice_is(event->state, "STATE_DEFAULT"));
	bool is_cpu = decoder->is_wall ? event->state.len && !sleeps : !is_wall;

	if (is_cpu && !add_sample(decoder, reader, SOURCE_EXECUTION, JFR_CPU, event))
		return false;
	return !is_wall || add_sample(decoder, reader, SOURCE_EXECUTION, JFR_WALL, event);
}

static bool add_event(struct decoder *decoder, struct jfr_reader *reader, size_t source,
		      uint32_t class)
{
	struct event event = read_event(reader, class, sources[source].field);

	if (reader->failed || !event.stack)
		return !reader->failed; /* events of the whole process have no stack */
	if (source == SOURCE_EXECUTION && decoder->is_covered)
		return true;
	if (source != SOURCE_EXECUTION)
		return add_sample(decoder, reader, source, sources[source].kind, &event);
	return add_execution(decoder, reader, &event);
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

static bool has_state(struct jfr_chunk *chunk, const char *name)
{
	for (size_t i = 0; i < chunk->constants_count; i++) {
		const struct jfr_constant *constant = &chunk->constants[i];

		if (slice_is(chunk->classes[constant->class].name, "jdk.types.ThreadState") &&
		    slice_is(jfr_constant_field(chunk, constant, "name", NULL).text, name))
			return true;
	}
	return false;
}

static struct span span_of(const struct jfr_chunk *chunk)
{
	struct span span = { chunk->start_ns, chunk->start_ns };

	if (chunk->duration_ns <= 0 ||
	    __builtin_add_overflow(span.start_ns, chunk->duration_ns, &span.end_ns))
		span.end_ns = span.start_ns;
	return span;
}

static bool is_covered(const struct decoder *decoder, struct span span)
{
	for (size_t i = 0; i < decoder->spans_count; i++) {
		const struct span *by = &decoder->spans[i];
		int64_t start_ns = by->start_ns > span.start_ns ? by->start_ns : span.start_ns;
		int64_t end_ns = by->end_ns < span.end_ns ? by->end_ns : span.end_ns;

		if (end_ns > start_ns && end_ns - start_ns > (span.end_ns - span.start_ns) / 2)
			return true;
	}
	return false;
}

static void note_times(struct decoder *decoder, struct span span, bool is_datadog)
{
	if (!decoder->has_times || span.start_ns < decoder->start_ns)
		decoder->start_ns = span.start_ns;
	if (!decoder->has_times || span.end_ns > decoder->end_ns)
		decoder->end_ns = span.end_ns;
	decoder->has_times = true;
	if (is_datadog && decoder->jfr->built[JFR_CPU].strings && decoder->spans_count < SPANS_MAX)
		decoder->spans[decoder->spans_count++] = span;
}

static int read_chunk(struct decoder *decoder, struct slice bytes, size_t number, bool is_datadog)
{
	int rc = jfr_chunk_open(&decoder->chunk, bytes, number, decoder->elements_max,
				decoder->budget, decoder->err);
	struct span span = span_of(&decoder->chunk);

	for (size_t i = 0; i < SOURCES && !rc; i++)
		decoder->classes[i] = jfr_chunk_class(&decoder->chunk, sources[i].event);
	if (!rc)
		rc = read_settings(decoder);
	if (!rc) {
		decoder->has_default_state = has_state(&decoder->chunk, "STATE_DEFAULT");
		decoder->is_covered = !is_datadog && is_covered(decoder, span);
		rc = read_events(decoder);
	}
	if (!rc)
		note_times(decoder, span, is_datadog);
	for (int i = 0; i < JFR_KINDS; i++) {
		idmap_clear(&decoder->merging[i].by_key);
		decoder->merging[i].count = 0;
	}
	jfr_chunk_free(&decoder->chunk);
	return rc;
}

/* Of Datadog's profiler, by the names in its description. */
static bool is_of_datadog(struct slice chunk)
{
	const char *name = "datadog.ExecutionSample";

	return memmem(chunk.data, chunk.len, name, strlen(name)) != NULL;
}

/*
 * Datadog's tracer sends the JDK's recording with that of its own profiler behind it, and both can
 * have samples of the same CPU time. So chunks of its own are read first, and the JDK's samples of
 * that time are passed over.
 */
static int read_chunks(struct decoder *decoder, struct slice bytes, bool is_datadog)
{
	size_t number = 0;
	uint64_t len;
	int rc = 0;

	for (; !rc && bytes.len; number++) {
		struct slice chunk;

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
		chunk = slice_from(bytes.data, (size_t)len);
		if (is_of_datadog(chunk) == is_datadog)
			rc = read_chunk(decoder, chunk, number, is_datadog);
		bytes = slice_tail(bytes, (size_t)len);
	}
	return rc;
}

int jfr_decode(struct slice bytes, const struct jfr_labels *labels, size_t elements_max,
	       struct budget *budget, struct jfr *ret, struct err *err)
{
	struct err own_err = { 0 };
	struct decoder *decoder = mem_new(struct decoder);
	bool any = false;
	int rc;

	*ret = (struct jfr){ .unfinished = false };
	decoder->jfr = ret;
	decoder->labels = labels;
	decoder->elements_max = elements_max;
	decoder->budget = budget;
	decoder->err = err ? err : &own_err;
	rc = read_chunks(decoder, bytes, true);
	if (!rc)
		rc = read_chunks(decoder, bytes, false);
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
	for (int i = 0; i < JFR_KINDS; i++) {
		idmap_free(&decoder->merging[i].by_key);
		free(decoder->merging[i].keys);
		free(decoder->merging[i].samples);
	}
	free(decoder);
	return rc;
}

void jfr_free(struct jfr *jfr)
{
	for (int i = 0; i < JFR_KINDS; i++)
		if (jfr->built[i].strings)
			stack_builder_free(&jfr->built[i]);
}

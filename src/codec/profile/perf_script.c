/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/profile/perf_script.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

#define EVENT_BYTES_MAX 100
#define EVENTS_MAX 16
#define COMM_BYTES_MAX 64

/* The head line of a sample. */
struct head {
	struct slice comm, event;
	uint64_t pid;
	int64_t period, at_ns;
	bool has_period;
};

struct reader {
	struct stack_builder *into;
	struct head head; /* of the sample that is open */
	bool open, any;
	bool has_period; /* of some event: else all there is are counts of samples */
	struct slice events[EVENTS_MAX];
	size_t events_count;
	size_t event;		   /* of the sample that is open: index into these */
	int64_t first_ns, last_ns; /* of all samples, since whatever perf's clock counts from */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The last word before `line`'s end; cuts it off. */
static struct slice take_last_word(struct slice *line)
{
	struct slice trimmed = slice_trim(*line);
	size_t start = trimmed.len;

	while (start && !is_blank(trimmed.data[start - 1]))
		start--;
	*line = (struct slice){ trimmed.data, start };
	return slice_tail(trimmed, start);
}

/* "1234" or "1234/1235". */
static bool parse_ids(struct slice word, uint64_t *pid)
{
	struct slice tid, first = slice_cut(word, '/', &tid);
	uint64_t ignored;

	return slice_parse_u64(first, pid) &&
	       (first.len == word.len || slice_parse_u64(tid, &ignored));
}

/* "12345.678901:" */
static bool is_time(struct slice word)
{
	if (word.len < 2 || word.data[word.len - 1] != ':')
		return false;
	for (size_t i = 0; i + 1 < word.len; i++)
		if (word.data[i] != '.' && (word.data[i] < '0' || word.data[i] > '9'))
			return false;
	return true;
}

/* The time of a text that is_time accepts: "12345.678901:", in seconds; saturates. */
static int64_t time_ns(struct slice word)
{
	int64_t ns = 0, unit = 0;

	for (size_t i = 0; i + 1 < word.len; i++) {
		if (word.data[i] == '.') {
			unit = unit ? unit : CLOCK_NS_PER_S;
			continue;
		}
		if (unit == 1 || ns > (INT64_MAX - 9) / 10)
			continue;
		ns = ns * 10 + (word.data[i] - '0');
		unit /= 10;
	}
	if (__builtin_mul_overflow(ns, unit ? unit : CLOCK_NS_PER_S, &ns))
		return INT64_MAX;
	return ns;
}

/* Where the time stands in a head line: everything hangs on it. SIZE_MAX: nowhere. */
static size_t find_time(struct slice line, struct slice *ret_time)
{
	for (size_t at = 0; at < line.len;) {
		size_t end = at;

		while (end < line.len && !is_blank(line.data[end]))
			end++;
		*ret_time = (struct slice){ line.data + at, end - at };
		if (at && is_time(*ret_time))
			return at;
		for (at = end; at < line.len && is_blank(line.data[at]);)
			at++;
	}
	return SIZE_MAX;
}

/* [period] event: */
static void parse_event(struct slice rest, struct head *head)
{
	struct slice after, word;
	uint64_t period;

	rest = slice_trim(rest);
	word = slice_cut(rest, ' ', &after);
	if (slice_parse_u64(word, &period) && period <= INT64_MAX) {
		head->has_period = true;
		head->period = (int64_t)period;
		rest = slice_trim(after);
		word = slice_cut(rest, ' ', &after);
	}
	while (word.len && word.data[word.len - 1] == ':')
		word.len--;
	head->event = word;
}

static bool parse_head(struct slice line, struct head *head)
{
	struct slice before, time, word;
	size_t at = find_time(line, &time);

	*head = (struct head){ 0 };
	if (at == SIZE_MAX)
		return false;
	before = (struct slice){ line.data, at };
	word = take_last_word(&before);
	if (word.len && word.data[0] == '[')
		word = take_last_word(&before);
	if (!parse_ids(word, &head->pid))
		return false;
	head->at_ns = time_ns(time);
	head->comm = slice_trim(before);
	if (head->comm.len > COMM_BYTES_MAX)
		head->comm.len = COMM_BYTES_MAX;
	parse_event(slice_tail(line, at + time.len), head);
	return head->comm.len > 0;
}

bool perf_script_is(struct slice text)
{
	while (text.len) {
		struct slice line = slice_cut(text, '\n', &text);
		struct head head;

		if (slice_trim(line).len && line.data[0] != '#')
			return !is_blank(line.data[0]) ? parse_head(line, &head)
						       : parse_head(slice_trim(line), &head);
	}
	return false;
}

static bool is_clock(const char *event)
{
	return !strncmp(event, "cpu-clock", 9) || !strncmp(event, "task-clock", 10);
}

static bool parse_hex(struct slice word, uint64_t *ret)
{
	uint64_t value = 0;

	if (!word.len || word.len > 16)
		return false;
	for (size_t i = 0; i < word.len; i++) {
		char c = word.data[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
						   : -1;

		if (digit < 0)
			return false;
		value = value << 4 | (uint64_t)digit;
	}
	*ret = value;
	return true;
}

/* Index of the event, or of a new one; EVENTS_MAX when there are too many. */
static size_t event_of(struct reader *reader, struct slice event)
{
	size_t at = 0;

	if (event.len > EVENT_BYTES_MAX)
		event.len = EVENT_BYTES_MAX;
	while (at < reader->events_count && !slice_equal(reader->events[at], event))
		at++;
	if (at == reader->events_count && at < EVENTS_MAX)
		reader->events[reader->events_count++] = event;
	return at;
}

/* Which events there are: each is a sample type, and these come first. */
static int find_events(struct reader *reader, struct slice text, struct err *err)
{
	bool open = false;

	while (text.len) {
		struct slice line = slice_cut(text, '\n', &text), trimmed = slice_trim(line), rest;
		struct head head;
		uint64_t address;

		open &= trimmed.len > 0;
		if (!trimmed.len || line.data[0] == '#' ||
		    (open && is_blank(line.data[0]) &&
		     parse_hex(slice_cut(trimmed, ' ', &rest), &address)) ||
		    !parse_head(trimmed, &head))
			continue;
		open = true;
		reader->has_period |= head.has_period && head.event.len;
		if (event_of(reader, head.event) == EVENTS_MAX)
			return err_set(err, ERR_LIMIT, "perf script: more than %d events",
				       EVENTS_MAX);
	}
	return 0;
}

static void begin_types(struct reader *reader)
{
	char event[EVENT_BYTES_MAX + 1];
	bool has_clock = false;

	stack_builder_type(reader->into, "samples", "count");
	if (!reader->has_period && reader->events_count < 2)
		return;
	for (size_t i = 0; i < reader->events_count; i++) {
		snprintf(event, sizeof(event), "%.*s", SLICE_FMT(reader->events[i]));
		if (reader->has_period && is_clock(event) && !has_clock)
			stack_builder_type(reader->into, "cpu", "nanoseconds");
		else
			stack_builder_type(reader->into, event[0] ? event : "event", "count");
		has_clock |= is_clock(event);
	}
}

static void end_sample(struct reader *reader)
{
	const struct head *head = &reader->head;
	int64_t values[1 + EVENTS_MAX] = { 1 };

	if (!reader->open)
		return;
	reader->open = false;
	values[1 + reader->event] = head->has_period ? head->period : 1;
	stack_builder_sample(reader->into, false, values);
	stack_builder_label(reader->into, "comm", head->comm);
	if (head->pid <= INT64_MAX)
		stack_builder_label_number(reader->into, "pid", (int64_t)head->pid);
}

/* "([kernel.kallsyms])" -> "[kernel]", "([nf_tables])" as it is, "(/path (deleted))" -> "/path". */
static struct slice mapping_of(struct slice text)
{
	static const char deleted[] = " (deleted)";
	const size_t deleted_len = sizeof(deleted) - 1;

	if (text.len > deleted_len &&
	    !memcmp(text.data + text.len - deleted_len, deleted, deleted_len))
		text.len -= deleted_len;
	if (slice_starts_with(text, SLICE_LITERAL("[kernel.kallsyms]")) ||
	    slice_starts_with(text, SLICE_LITERAL("[guest.kernel")))
		return SLICE_LITERAL("[kernel]");
	if (slice_is(text, "[unknown]") || slice_is(text, "inlined"))
		return (struct slice){ 0 };
	return text;
}

/* Index of the blank before the binary's '(' that ends the line, or SIZE_MAX. */
static size_t find_mapping(struct slice line)
{
	size_t depth = 0;

	for (size_t at = line.len; at--;) {
		if (line.data[at] == ')')
			depth++;
		else if (line.data[at] == '(' && depth && !--depth && at &&
			 is_blank(line.data[at - 1]))
			return at - 1;
	}
	return SIZE_MAX;
}

static bool take_frame(struct slice line, struct stack_builder *into)
{
	struct stack_builder_frame frame = { 0 };
	struct slice rest, address = slice_cut(line, ' ', &rest);
	size_t at;

	if (!parse_hex(address, &frame.address))
		return false;
	rest = slice_trim(rest);
	if (rest.len && rest.data[rest.len - 1] == ')') {
		at = find_mapping(rest);
		if (at != SIZE_MAX) {
			frame.mapping =
				mapping_of((struct slice){ rest.data + at + 2, rest.len - at - 3 });
			rest = slice_trim((struct slice){ rest.data, at });
		}
	}
	frame.name = rest;
	for (size_t i = rest.len; i-- > 1;) {
		if (rest.data[i] == '+') {
			if (rest.len > i + 2 && rest.data[i + 1] == '0' && rest.data[i + 2] == 'x')
				frame.name.len = i;
			break;
		}
	}
	if (slice_is(frame.name, "[unknown]"))
		frame.name = (struct slice){ 0 };
	else
		frame.address = 0; /* of the process, not of the file: says nothing beside a name */
	stack_builder_push(into, &frame);
	return true;
}

/* Samples without call graphs have their frame at the end of the head line. */
static void take_inline_frame(struct slice line, struct stack_builder *into)
{
	struct slice time, rest;
	size_t at = find_time(line, &time), colon;

	rest = slice_tail(line, at + time.len);
	colon = slice_find_byte(rest, ':');
	while (colon != SIZE_MAX && colon + 1 < rest.len && !is_blank(rest.data[colon + 1]))
		colon++;
	if (colon != SIZE_MAX && colon + 1 < rest.len)
		take_frame(slice_trim(slice_tail(rest, colon + 1)), into);
}

static int take_line(struct reader *reader, struct slice line, size_t number, struct err *err)
{
	struct slice trimmed = slice_trim(line);
	struct head head;

	if (!trimmed.len) {
		end_sample(reader);
		return 0;
	}
	if (reader->open && is_blank(line.data[0]) && take_frame(trimmed, reader->into))
		return 0;
	if (!parse_head(trimmed, &head))
		return err_set(err, ERR_INVALID,
			       "perf script: line %zu is neither the head of a sample nor a frame",
			       number);
	end_sample(reader);
	reader->event = event_of(reader, head.event);
	if (reader->event == EVENTS_MAX)
		return err_set(err, ERR_LIMIT, "perf script: more than %d events", EVENTS_MAX);
	if (!reader->any || head.at_ns < reader->first_ns)
		reader->first_ns = head.at_ns;
	if (!reader->any || head.at_ns > reader->last_ns)
		reader->last_ns = head.at_ns;
	reader->any = true;
	reader->head = head;
	reader->open = true;
	take_inline_frame(trimmed, reader->into);
	return 0;
}

int perf_script_decode(struct slice text, struct stack_builder *into, struct err *err)
{
	struct reader reader = { .into = into };
	size_t number = 0;
	int rc = find_events(&reader, text, err);

	if (!rc)
		begin_types(&reader);
	while (!rc && text.len) {
		struct slice line = slice_cut(text, '\n', &text);

		number++;
		if (!line.len || line.data[0] != '#')
			rc = take_line(&reader, line, number, err);
	}
	if (rc)
		return rc;
	end_sample(&reader);
	into->profile.duration_nanos = reader.last_ns - reader.first_ns;
	return stack_builder_check(into, "perf script", err);
}

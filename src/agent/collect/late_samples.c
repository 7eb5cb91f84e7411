/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/late_samples.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/metrics.h"

#define WALKS "firn_agent_second_walks_total"
#define WALKS_HELP "Samples whose stack lacked a table or mappings, and was unwound later."
static METRIC_COUNTER(walks_done, WALKS, "{result=\"done\"}", WALKS_HELP);
static METRIC_COUNTER(walks_late, WALKS, "{result=\"in_vain\"}", WALKS_HELP);
static METRIC_COUNTER(walks_no_room, WALKS, "{result=\"no_room\"}", WALKS_HELP);

void late_samples_metrics_register(void)
{
	static struct metric *const own[] = { &walks_done, &walks_late, &walks_no_room };

	metrics_register(own, sizeof(own) / sizeof(own[0]));
}

static size_t bytes_max(unsigned frequency_hz)
{
	size_t bytes = frequency_hz * LATE_BYTES_PER_HZ;

	if (bytes < LATE_BYTES_MIN)
		return LATE_BYTES_MIN;
	return bytes < LATE_BYTES_MAX ? bytes : LATE_BYTES_MAX;
}

void late_samples_init(struct late_samples *late, const struct second_walk_source *source,
		       unsigned frequency_hz)
{
	*late = (struct late_samples){ .walk = second_walk_new(source),
				       .bytes_max = bytes_max(frequency_hz) };
}

static void drop(struct late_samples *late, size_t at)
{
	struct late_sample *item = &late->items[at];

	late->bytes -= item->bytes;
	space_unref(item->space);
	free(item->stack);
	free(item->sample);
	*item = late->items[--late->count];
}

void late_samples_free(struct late_samples *late)
{
	while (late->count)
		drop(late, late->count - 1);
	free(late->items);
	second_walk_free(late->walk);
}

static void *copy_of(const void *from, size_t len)
{
	void *copy = mem_calloc(1, len);

	memcpy(copy, from, len);
	return copy;
}

/* A sample that never came: the ring buffer was full. */
static void drop_widow(struct late_samples *late, uint32_t cpu)
{
	for (size_t i = 0; i < late->count; i++)
		if (!late->items[i].sample && late->items[i].stack->head.cpu == cpu) {
			drop(late, i);
			return;
		}
}

bool late_samples_take_stack(struct late_samples *late, const struct stack_record *stack,
			     size_t len)
{
	if (!second_walk_is_sound(stack, len))
		return false;
	drop_widow(late, stack->head.cpu);
	if (late->bytes + len > late->bytes_max)
		return true;
	mem_grow(late->items, late->count, late->capacity);
	late->items[late->count++] =
		(struct late_sample){ .stack = copy_of(stack, len), .bytes = len };
	late->bytes += len;
	return true;
}

static struct late_sample *find_stack(struct late_samples *late, const struct record_head *head)
{
	for (size_t i = late->count; i-- > 0;) {
		const struct record_head *of = &late->items[i].stack->head;

		if (!late->items[i].sample && of->cpu == head->cpu && of->at_ns == head->at_ns &&
		    of->tid == head->tid)
			return &late->items[i];
	}
	return NULL;
}

bool late_samples_take(struct late_samples *late, const struct sample *sample, struct space *space,
		       int64_t now_ns)
{
	struct late_sample *item = find_stack(late, &sample->head);
	/* A second walk may find more frames than the first, of HotSpot's as well. */
	size_t room =
		SAMPLE_HEADER_BYTES +
		8ull * (sample->kernel_count + 3 * SAMPLE_USER_FRAMES_MAX + sample->script_words);
	size_t len = SAMPLE_HEADER_BYTES +
		     8ull * (sample->kernel_count + sample->user_count + sample->script_words);

	if (!item) {
		metric_add(&walks_no_room, 1);
		return false;
	}
	assert(sample->user_count <= SAMPLE_USER_FRAMES_MAX);
	item->sample = mem_calloc(1, room);
	memcpy(item->sample, sample, len);
	item->bytes += room;
	late->bytes += room;
	item->space = space_ref(space);
	item->since_ns = now_ns;
	return true;
}

/* A walk would end where the last one did. */
static bool is_waiting_for_table(struct late_samples *late, const struct late_sample *item,
				 int64_t waited_ns)
{
	bool is = item->is_table_missing && waited_ns < LATE_COMING_NS &&
		  second_walk_is_coming(late->walk, &item->missing);

	late->coming += is;
	return is;
}

/* What is not there yet will be. */
static void say_lost(const struct late_samples *late, struct sample *sample)
{
	if (sample->user_end == STACK_TABLE_PENDING && second_walk_has_lost_table(late->walk))
		sample->user_end = STACK_TABLE_FAILED;
}

static bool walk_one(struct late_samples *late, struct late_sample *item,
		     const struct late_samples_user *user, int64_t now_ns)
{
	const struct space *space = item->space;
	int64_t waited_ns = now_ns - item->since_ns;
	bool is_last = waited_ns >= LATE_WAIT_NS, is_done;

	if (is_waiting_for_table(late, item, waited_ns))
		return false;
	if (!space)
		space = user->find_space(user->context, item->sample);
	is_done = second_walk_run(late->walk, item->stack, space, is_last, item->sample);
	item->is_table_missing = !is_done && second_walk_missing(late->walk, &item->missing);
	late->coming += item->is_table_missing;
	if (!is_done && (!is_last || (item->is_table_missing && waited_ns < LATE_COMING_NS)))
		return false;
	if (!is_done)
		say_lost(late, item->sample);
	metric_add(is_done ? &walks_done : &walks_late, 1);
	item->sample->head.flags &= ~(uint32_t)SAMPLE_HAS_STACK;
	user->done(user->context, item->sample, space);
	return true;
}

void late_samples_walk(struct late_samples *late, const struct late_samples_user *user,
		       int64_t now_ns)
{
	late->coming = 0;
	if (!late->count)
		return;
	for (size_t i = late->count; i-- > 0;)
		if (late->items[i].sample && walk_one(late, &late->items[i], user, now_ns))
			drop(late, i);
	second_walk_rest(late->walk);
}

bool late_samples_are_coming(const struct late_samples *late)
{
	return late->coming;
}

void late_samples_give_up(struct late_samples *late)
{
	for (size_t i = 0; i < late->count; i++)
		late->items[i].since_ns = -LATE_COMING_NS;
}

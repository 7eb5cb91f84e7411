/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/table/symbol_pack.h"

#include <stdlib.h>

bool symbol_pack_patch(const struct symbol_pack *pack, const struct symbol_pack_field *field,
		       unsigned record, uint32_t *ret)
{
	uint64_t at = field->patches_at;

	for (unsigned i = 0; i < field->patches; i++) {
		uint32_t index = symbol_bits(pack->bits, at, SYMBOL_PACK_INDEX_BITS);

		if (index >= record) { /* they rise */
			*ret = symbol_bits(pack->bits, at + SYMBOL_PACK_INDEX_BITS,
					   field->patch_width);
			return index == record;
		}
		at += SYMBOL_PACK_INDEX_BITS + field->patch_width;
	}
	return false;
}

/* Numbers of any width, the lowest bits first. */
struct bit_writer {
	struct strbuf *out;
	uint64_t held;
	unsigned held_bits; /* below 8 between calls */
};

static void put_bits(struct bit_writer *bits, uint32_t value, unsigned width)
{
	bits->held |= (uint64_t)value << bits->held_bits;
	for (bits->held_bits += width; bits->held_bits >= 8; bits->held_bits -= 8) {
		strbuf_add_byte(bits->out, (char)bits->held);
		bits->held >>= 8;
	}
}

static void end_bits(struct bit_writer *bits)
{
	if (bits->held_bits)
		strbuf_add_byte(bits->out, (char)bits->held);
}

static unsigned width_of(uint32_t value)
{
	return value ? 32 - (unsigned)__builtin_clz(value) : 0;
}

static bool has_bit(uint64_t bits, unsigned number)
{
	return bits >> number & 1;
}

/* How a field is written. */
struct plan {
	unsigned width, patch_width, patches, base_width;
	uint32_t base;
	uint64_t is_patch; /* by record */
};

/* With `width` bits for what fits; returns how many bits the field takes then. */
static unsigned try_width(const struct symbol_pack_input *input, unsigned count, unsigned width,
			  struct plan *plan)
{
	uint64_t largest = (1ull << width) - 1;

	plan->width = width;
	plan->patches = plan->patch_width = 0;
	plan->is_patch = 0;
	for (unsigned i = 0; i < count; i++) {
		unsigned patch_width = width_of(input->patches[i]);

		if (has_bit(input->any, i) ||
		    (!has_bit(input->must_patch, i) && input->values[i] - plan->base <= largest))
			continue;
		plan->is_patch |= 1ull << i;
		plan->patches++;
		if (patch_width > plan->patch_width)
			plan->patch_width = patch_width;
	}
	return count * width + plan->patches * (SYMBOL_PACK_INDEX_BITS + plan->patch_width);
}

static int compare_values(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The base with which `width` bits say the most of the sorted values; `said`: how many. */
static uint32_t best_base(const uint32_t *sorted, unsigned count, unsigned width, unsigned *said)
{
	uint64_t largest = (1ull << width) - 1;
	uint32_t base = sorted[0];
	unsigned first = 0, most = 0;

	for (unsigned end = 0; end < count; end++) {
		while (sorted[end] - sorted[first] > largest)
			first++;
		if (end + 1 - first > most) {
			most = end + 1 - first;
			base = sorted[first];
		}
	}
	*said = most;
	return base;
}

static struct plan plan_field(const struct symbol_pack_input *input, unsigned count)
{
	struct plan best = { 0 }, plan = { 0 };
	uint32_t sorted[SYMBOL_PACK_RECORDS];
	unsigned sorted_count = 0, least = UINT32_MAX, widest = 0;

	for (unsigned i = 0; i < count; i++)
		if (!has_bit(input->any | input->must_patch, i))
			sorted[sorted_count++] = input->values[i];
	if (sorted_count) {
		qsort(sorted, sorted_count, sizeof(*sorted), compare_values);
		widest = width_of(sorted[sorted_count - 1] - sorted[0]);
	}
	/* Most widths need not be tried: they take more for the values alone than the best takes.
	 */
	for (unsigned width = 0; width <= widest && count * width < least; width++) {
		unsigned bits, said = 0;

		plan.base = sorted_count ? best_base(sorted, sorted_count, width, &said) : 0;
		if (count * width + (sorted_count - said) * SYMBOL_PACK_INDEX_BITS >= least)
			continue;
		if (width_of(plan.base) > SYMBOL_PACK_BASE_MASK) /* its width has five bits */
			plan.base = 0;
		plan.base_width = width_of(plan.base);
		bits = plan.base_width + try_width(input, count, width, &plan);
		if (bits < least) {
			least = bits;
			best = plan;
		}
	}
	return best;
}

static void put_field(struct bit_writer *bits, const struct symbol_pack_input *input,
		      unsigned count, const struct plan *plan)
{
	uint32_t mask = (uint32_t)((1ull << plan->width) - 1);

	for (unsigned i = 0; i < count; i++) {
		uint32_t value = input->values[i] - plan->base;

		if (has_bit(plan->is_patch, i))
			value = mask;
		else if (has_bit(input->any, i))
			value = 0;
		put_bits(bits, value, plan->width);
	}
	for (unsigned i = 0; i < count; i++) {
		if (!has_bit(plan->is_patch, i))
			continue;
		put_bits(bits, i, SYMBOL_PACK_INDEX_BITS);
		put_bits(bits, input->patches[i], plan->patch_width);
	}
}

void symbol_pack_write(struct symbol_pack_input *inputs, unsigned fields, unsigned count,
		       struct strbuf *out)
{
	struct plan plans[SYMBOL_PACK_FIELDS_MAX];
	struct bit_writer bits = { .out = out };

	strbuf_add_byte(out, (char)count);
	for (unsigned i = 0; i < fields; i++) {
		struct plan *plan = &plans[i];
		uint32_t word;

		*plan = plan_field(&inputs[i], count);
		word = plan->width | plan->patches << SYMBOL_PACK_COUNT_SHIFT |
		       plan->patch_width << SYMBOL_PACK_PATCH_SHIFT |
		       plan->base_width << SYMBOL_PACK_BASE_SHIFT;
		strbuf_add(out, &(uint32_t){ htole32(word) }, SYMBOL_PACK_FIELD_BYTES);
	}
	for (unsigned i = 0; i < fields; i++) {
		put_bits(&bits, plans[i].base, plans[i].base_width);
		put_field(&bits, &inputs[i], count, &plans[i]);
	}
	end_bits(&bits);
}

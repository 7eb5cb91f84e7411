/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/table/symbol_choice.h"

#include "base/order/bisect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME_BYTES 24 /* "+0x", 16 digits */

struct choice {
	struct symbol_builder *builder;
	const struct elf_info *info;
	struct address_range_list chosen; /* values are candidates */
};

/* By address, the best name of an address first. */
static int compare_candidates(const void *a, const void *b)
{
	const struct symbol_candidate *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* By address; of one place, that first of which most is known. */
static int compare_extents(const void *a, const void *b)
{
	const struct symbol_extent *x = a, *y = b;
	bool x_is_part = x->entry != x->low, y_is_part = y->entry != y->low;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	if (x->high != y->high)
		return x->high < y->high ? -1 : 1;
	if (x_is_part != y_is_part)
		return x_is_part ? -1 : 1;
	return (x->entry > y->entry) - (x->entry < y->entry);
}

/* By address, none within another: what reaches into the one before is cut or left out. */
static void sort_extents(struct symbol_builder *builder)
{
	struct symbol_extent *extents = builder->extents;
	uint64_t end = 0;
	size_t kept = 0;

	if (builder->extents_count)
		qsort(extents, builder->extents_count, sizeof(*extents), compare_extents);
	for (size_t i = 0; i < builder->extents_count; i++) {
		struct symbol_extent extent = extents[i];

		if (extent.high <= end)
			continue;
		if (extent.low < end) {
			if (extent.entry == extent.low)
				extent.entry = end;
			extent.low = end;
		}
		end = extent.high;
		extents[kept++] = extent;
	}
	builder->extents_count = kept;
}

/* The next higher address of a symbol, or the end of the section. */
static uint64_t next_symbol(const struct symbol_builder *builder, size_t from)
{
	const struct symbol_candidate *symbol = &builder->candidates[from];

	for (size_t i = from + 1; i < builder->candidates_count; i++)
		if (builder->candidates[i].address > symbol->address)
			return builder->candidates[i].address < symbol->section_end
				       ? builder->candidates[i].address
				       : symbol->section_end;
	return symbol->section_end;
}

/* The first extent that ends behind the address, or NULL. */
static const struct symbol_extent *extent_from(const struct symbol_builder *builder,
					       uint64_t address)
{
	size_t first = bisect(0, builder->extents_count, i, builder->extents[i].high <= address);

	return first < builder->extents_count ? &builder->extents[first] : NULL;
}

/*
 * How far a symbol without size reaches: to the next one, but never into another function. At the
 * start of a function it is that function, whatever labels are in it (*ret_is_whole).
 */
static uint64_t unsized_end(const struct symbol_builder *builder, size_t symbol, bool *ret_is_whole)
{
	uint64_t address = builder->candidates[symbol].address;
	uint64_t end = next_symbol(builder, symbol), limit;
	const struct symbol_extent *extent = extent_from(builder, address);

	*ret_is_whole = extent && extent->low == address;
	if (*ret_is_whole)
		return extent->high;
	if (!extent)
		return end;
	limit = extent->low > address ? extent->low : extent->high;
	return limit < end ? limit : end;
}

/*
 * A symbol without size is left out within the code of one that has a size: there it is a label,
 * not a function.
 */
static void choose_symbols(struct choice *choice)
{
	const struct symbol_builder *builder = choice->builder;
	uint64_t sized_end = 0;

	for (size_t i = 0; i < builder->candidates_count && i < RANGE_NONE; i++) {
		const struct symbol_candidate *symbol = &builder->candidates[i];
		uint64_t end = symbol->section_end;
		bool is_whole = true;

		if (i && builder->candidates[i - 1].address == symbol->address)
			continue;
		if (!symbol->size && symbol->address < sized_end)
			continue;
		if (!symbol->size)
			end = unsized_end(builder, i, &is_whole);
		else if (symbol->size < end - symbol->address)
			end = symbol->address + symbol->size;
		if (is_whole && end > sized_end)
			sized_end = end;
		address_range_list_add(&choice->chosen, symbol->address, end, (uint32_t)i);
	}
}

static int compare_guesses(const void *a, const void *b)
{
	const struct symbol_guess *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* What is guessed of the function that starts at an address: a text, or 0. */
static uint32_t guess_at(const struct symbol_builder *builder, uint64_t address)
{
	const struct symbol_guess key = { .address = address }, *found = NULL;

	if (builder->guesses_count)
		found = bsearch(&key, builder->guesses, builder->guesses_count, sizeof(key),
				compare_guesses);
	return found ? found->text : 0;
}

/* The candidate of a function without a name; RANGE_NONE when over budget. */
static uint32_t add_unnamed(struct choice *choice, uint64_t low, uint64_t high, uint32_t guess)
{
	struct symbol_builder *builder = choice->builder;
	size_t count = builder->candidates_count;
	char name[NAME_BYTES];
	uint32_t start;
	uint64_t offset;
	int len;

	if (!elf_address_to_offset(choice->info, low, &offset))
		offset = low;
	len = snprintf(name, sizeof(name), SYMBOL_UNNAMED_PREFIX "%" PRIx64, offset);
	start = symbol_builder_text(builder, slice_from(name, (size_t)len));
	symbol_builder_symbol(builder, &(struct symbol_candidate){
					       .address = low,
					       .size = high - low,
					       .section_end = high,
					       .name = guess ? guess : start,
					       .linkage_name = guess ? start : 0,
					       .is_unnamed = true,
				       });
	return builder->candidates_count > count && count < RANGE_NONE ? (uint32_t)count
								       : RANGE_NONE;
}

typedef void gap_f(struct choice *choice, const struct symbol_extent *extent, uint64_t low,
		   uint64_t high, const struct range_cover *cover);

/* The value that the cover has at an address, and where it ends. */
static uint32_t value_at(const struct range_cover *cover, uint64_t address, uint64_t *ret_end)
{
	size_t first = bisect(0, cover->count, i, cover->items[i].start <= address);

	*ret_end = first < cover->count ? cover->items[first].start : UINT64_MAX;
	return first ? cover->items[first - 1].value : RANGE_NONE;
}

/* Visits what of the functions, or of their parts, the cover leaves free. */
static void each_gap(struct choice *choice, bool of_parts, const struct range_cover *cover,
		     gap_f *visit)
{
	const struct symbol_builder *builder = choice->builder;

	for (size_t i = 0; i < builder->extents_count; i++) {
		const struct symbol_extent *extent = &builder->extents[i];
		uint64_t low = extent->low, end;

		if ((extent->entry != extent->low) != of_parts)
			continue;
		for (; low < extent->high; low = end) {
			bool is_free = value_at(cover, low, &end) == RANGE_NONE;

			if (end > extent->high)
				end = extent->high;
			if (is_free)
				visit(choice, extent, low, end, cover);
		}
	}
}

static void add_function(struct choice *choice, const struct symbol_extent *extent, uint64_t low,
			 uint64_t high, const struct range_cover *cover)
{
	uint32_t guess = low == extent->low ? guess_at(choice->builder, low) : 0;
	uint32_t candidate = add_unnamed(choice, low, high, guess);

	(void)cover;
	if (candidate != RANGE_NONE)
		address_range_list_add(&choice->chosen, low, high, candidate);
}

/* A part is of its function, named or not. */
static void add_part(struct choice *choice, const struct symbol_extent *extent, uint64_t low,
		     uint64_t high, const struct range_cover *cover)
{
	uint32_t candidate = range_cover_find(cover, extent->entry);

	if (candidate == RANGE_NONE)
		candidate = add_unnamed(choice, low, high, 0);
	if (candidate != RANGE_NONE)
		address_range_list_add(&choice->chosen, low, high, candidate);
}

void symbol_choice_make(struct symbol_builder *builder, const struct elf_info *info,
			struct range_cover *ret)
{
	struct choice choice = { .builder = builder, .info = info };
	struct range_cover cover = { 0 };

	if (builder->candidates_count)
		qsort(builder->candidates, builder->candidates_count, sizeof(*builder->candidates),
		      compare_candidates);
	if (builder->guesses_count)
		qsort(builder->guesses, builder->guesses_count, sizeof(*builder->guesses),
		      compare_guesses);
	sort_extents(builder);
	choose_symbols(&choice);
	range_cover_make(&cover, &choice.chosen);
	each_gap(&choice, false, &cover, add_function);
	range_cover_make(&cover, &choice.chosen);
	each_gap(&choice, true, &cover, add_part);
	range_cover_make(ret, &choice.chosen);
	range_cover_free(&cover);
	address_range_list_free(&choice.chosen);
}

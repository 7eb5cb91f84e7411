/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/jit/code_images.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/order/bisect.h"

struct code_image_set {
	atomic_uint references;
	size_t count;
	struct wasm_image *items[]; /* by address */
};

struct code_image_set *code_image_set_ref(struct code_image_set *set)
{
	if (set)
		atomic_fetch_add_explicit(&set->references, 1, memory_order_relaxed);
	return set;
}

void code_image_set_unref(struct code_image_set *set)
{
	if (!set || atomic_fetch_sub_explicit(&set->references, 1, memory_order_acq_rel) > 1)
		return;
	for (size_t i = 0; i < set->count; i++)
		wasm_image_unref(set->items[i]);
	free(set);
}

static const struct wasm_image *image_at(const struct code_image_set *set, uint64_t address)
{
	size_t low = bisect(0, set ? set->count : 0, i, set->items[i]->text <= address);

	return low && address - set->items[low - 1]->text < set->items[low - 1]->text_bytes
		       ? set->items[low - 1]
		       : NULL;
}

bool code_image_set_find(const struct code_image_set *set, uint64_t address, struct code_place *ret)
{
	const struct wasm_image *image = image_at(set, address);

	return image && code_map_find(image->names, address, ret);
}

bool code_image_set_is_framed(const struct code_image_set *set, uint64_t address, bool is_innermost)
{
	const struct wasm_image *image = image_at(set, address);

	return image && wasm_image_is_framed(image, address, is_innermost);
}

static struct code_image_set *make_set(const struct code_images *images)
{
	struct code_image_set *set;

	if (!images->count)
		return NULL;
	set = mem_calloc(1, sizeof(*set) + images->count * sizeof(set->items[0]));
	atomic_init(&set->references, 1);
	set->count = images->count;
	for (size_t i = 0; i < images->count; i++)
		set->items[i] = wasm_image_ref(images->items[i]);
	return set;
}

/* How its code is left, or that this is not known any more. */
static void put_blocks(struct code_rows *rows, const struct wasm_image *image, bool is_there)
{
	uint64_t first = image->text >> CODE_BLOCK_SHIFT;

	for (size_t i = 0; rows && i < image->blocks; i++)
		if (image->framed[i])
			code_rows_put_block(rows, first + i, is_there);
}

static void add(struct code_images *images, struct wasm_image *image)
{
	size_t at = bisect(0, images->count, i, images->items[i]->text < image->text);

	mem_grow(images->items, images->count, images->capacity);
	memmove(&images->items[at + 1], &images->items[at],
		(images->count - at) * sizeof(*images->items));
	images->items[at] = image;
	images->count++;
	images->bytes += wasm_image_bytes(image);
}

static bool is_known(const struct code_images *images, uint64_t text)
{
	size_t at = bisect(0, images->count, i, images->items[i]->text < text);

	return at < images->count && images->items[at]->text == text;
}

static bool look_for(struct code_images *images, const struct memory_reader *memory,
		     const struct code_memory_range *range, struct code_rows *rows)
{
	struct wasm_image *image;

	if (images->count == CODE_IMAGES_MAX || is_known(images, range->start))
		return false;
	image = wasm_image_read(memory, range->start, range->end);
	if (!image)
		return false;
	put_blocks(rows, image, true);
	add(images, image);
	images->found++;
	return true;
}

static uint64_t end_of_pages(const struct wasm_image *image)
{
	return image->text +
	       (image->text_bytes + CODE_BLOCK_BYTES - 1) / CODE_BLOCK_BYTES * CODE_BLOCK_BYTES;
}

/* What has come to the place of one that is gone is looked for at once. */
static bool forget_gone(struct code_images *images, const struct memory_reader *memory,
			struct code_rows *rows)
{
	struct wasm_image **items = images->items;
	size_t count = images->count;
	bool is_changed = false;

	images->items = NULL;
	images->count = images->capacity = images->bytes = 0;
	for (size_t i = 0; i < count; i++) {
		const struct code_memory_range range = { items[i]->text, end_of_pages(items[i]) };

		if (wasm_image_is_there(memory, items[i])) {
			add(images, items[i]);
			continue;
		}
		put_blocks(rows, items[i], false);
		wasm_image_unref(items[i]);
		look_for(images, memory, &range, rows);
		is_changed = true;
	}
	free(items);
	return is_changed;
}

void code_images_update(struct code_images *images, const struct memory_reader *memory,
			const struct code_memory_range *ranges, size_t count, size_t bytes_max,
			struct code_rows *rows)
{
	bool is_changed = forget_gone(images, memory, rows);

	for (size_t i = 0; i < count && images->bytes < bytes_max; i++)
		is_changed |= look_for(images, memory, &ranges[i], rows);
	if (!is_changed)
		return;
	code_image_set_unref(images->set);
	images->set = make_set(images);
}

void code_images_fini(struct code_images *images)
{
	for (size_t i = 0; i < images->count; i++)
		wasm_image_unref(images->items[i]);
	free(images->items);
	code_image_set_unref(images->set);
	*images = (struct code_images){ 0 };
}

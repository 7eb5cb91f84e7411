/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/name/row_key.h"

#include <assert.h>

#include "server/query/name/name.h"

/* Where the frame lies; neighbours mostly are in one binary. */
static void find_place(struct row_place *place, const struct tables_view *view,
		       const struct frame *frame)
{
	struct slice name;

	assert(frame->mapping_file < view->strings_count);
	if (place->view == view && place->mapping == frame->mapping_file)
		return;
	name = name_binary_of(tables_text(view, frame->mapping_file));
	*place = (struct row_place){ .view = view,
				     .mapping = frame->mapping_file,
				     .is_one = slice_is(name, "[anon]") };
	if (!place->is_one && name.len > 2 && name.data[0] == '[' && name.data[name.len - 1] == ']')
		name = slice_from(name.data + 1, name.len - 2);
	place->name = name;
	place->hash = hash_bytes(name.data, name.len);
}

struct row_key row_key_of_address(struct row_place *place, const struct tables_view *view,
				  const struct frame *frame, uint64_t *ret_hash)
{
	struct row_key key = { .is_address = true };

	assert(frame->mapping_file < view->strings_count);
	find_place(place, view, frame);
	key.name = place->name;
	key.address = place->is_one ? 0 : frame->address;
	*ret_hash = row_key_hash(&key, place->hash);
	return key;
}

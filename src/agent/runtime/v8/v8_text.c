/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: V8's src/objects/string.tq and name.tq.
 */
#include "agent/runtime/v8/v8_text.h"

#include "codec/wire/utf8.h"

/* A piece of a string that is still to be read. */
struct piece {
	uint64_t word;
	uint32_t start, count;
};

struct text {
	const struct memory_reader *memory;
	const struct v8_layout *layout;
	struct strbuf *out;
	uint32_t room; /* characters */
	struct piece pieces[V8_TEXT_PIECES_MAX];
	int waiting, seen;
};

static void add_narrow(struct strbuf *out, const uint8_t *characters, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		utf8_add_character(out, characters[i]);
}

static bool read_characters(struct text *text, const struct piece *piece, uint64_t at,
			    bool is_narrow)
{
	uint16_t units[V8_TEXT_MAX];
	uint32_t count = piece->count < text->room ? piece->count : text->room;
	uint32_t bytes = is_narrow ? 1 : 2;

	if (count && !memory_read(text->memory, at + (uint64_t)piece->start * bytes, units,
				  (size_t)count * bytes))
		return false;
	text->room -= count;
	if (is_narrow)
		add_narrow(text->out, (const uint8_t *)units, count);
	else
		utf8_add_units(text->out, units, count);
	return true;
}

static bool word_of(const struct text *text, const struct piece *piece, uint16_t at, uint64_t *ret)
{
	return v8_word_read(text->memory, text->layout, piece->word - 1 + at, ret);
}

static bool put(struct text *text, uint64_t word, uint32_t start, uint32_t count)
{
	if (text->waiting == V8_TEXT_PIECES_MAX)
		return false;
	text->pieces[text->waiting++] = (struct piece){ word, start, count };
	return true;
}

static bool length_of(const struct text *text, uint64_t word, uint32_t *ret)
{
	return v8_is_object(word) &&
	       memory_read(text->memory, word - 1 + text->layout->text_length, ret, sizeof(*ret)) &&
	       *ret <= INT32_MAX;
}

/* A string made from two others: the second is read after the first. */
static bool put_both(struct text *text, const struct piece *piece)
{
	uint64_t first, second;
	uint32_t in_first, end = piece->start + piece->count;

	if (!word_of(text, piece, text->layout->cons_first, &first) ||
	    !word_of(text, piece, text->layout->cons_second, &second) ||
	    !length_of(text, first, &in_first))
		return false;
	if (end > in_first &&
	    !put(text, second, piece->start > in_first ? piece->start - in_first : 0,
		 end - (piece->start > in_first ? piece->start : in_first)))
		return false;
	return piece->start >= in_first ||
	       put(text, first, piece->start, (end < in_first ? end : in_first) - piece->start);
}

static bool put_parent(struct text *text, const struct piece *piece)
{
	uint64_t parent, start;

	return word_of(text, piece, text->layout->sliced_parent, &parent) &&
	       word_of(text, piece, text->layout->sliced_start, &start) &&
	       start >> 32 <= INT32_MAX &&
	       put(text, parent, (uint32_t)(start >> 32) + piece->start, piece->count);
}

static bool read_piece(struct text *text, const struct piece *piece)
{
	const struct v8_layout *layout = text->layout;
	uint16_t type = v8_type(text->memory, layout, piece->word), form = type & layout->form_mask;
	bool is_narrow = type & layout->narrow_mask;
	uint64_t word;

	if (type >= layout->text_types)
		return false;
	if (form == layout->form_cons)
		return put_both(text, piece);
	if (form == layout->form_sliced)
		return put_parent(text, piece);
	if (form == layout->form_thin)
		return word_of(text, piece, layout->thin_actual, &word) &&
		       put(text, word, piece->start, piece->count);
	if (form == layout->form_external) /* behind the resource: where its characters are */
		return memory_read(text->memory,
				   piece->word - 1 + layout->external_resource + sizeof(word),
				   &word, sizeof(word)) &&
		       read_characters(text, piece, word, is_narrow);
	return form == 0 &&
	       read_characters(text, piece, piece->word - 1 + layout->text_characters, is_narrow);
}

bool v8_text_read(const struct memory_reader *memory, const struct v8_layout *layout, uint64_t word,
		  struct strbuf *out)
{
	struct text text = { .memory = memory, .layout = layout, .out = out, .room = V8_TEXT_MAX };
	uint32_t count;

	if (!length_of(&text, word, &count))
		return false;
	put(&text, word, 0, count);
	while (text.waiting && text.room && text.seen++ < V8_TEXT_PIECES_MAX) {
		struct piece piece = text.pieces[--text.waiting];

		if (!read_piece(&text, &piece))
			return false;
	}
	return true;
}

/* Goes on to what the string is a stand-in or a part of. False when it is neither. */
static bool follow(const struct memory_reader *memory, const struct v8_layout *layout,
		   uint16_t form, uint64_t *word, uint32_t *start)
{
	uint64_t second, into = 0;
	uint32_t in_second = 1;
	uint16_t at = form == layout->form_cons	    ? layout->cons_first
		      : form == layout->form_sliced ? layout->sliced_parent
						    : layout->thin_actual;

	/* A string of two that was put together has all in the first. */
	if (form == layout->form_cons &&
	    (!v8_word_read(memory, layout, *word - 1 + layout->cons_second, &second) ||
	     !v8_is_object(second) ||
	     !memory_read(memory, second - 1 + layout->text_length, &in_second,
			  sizeof(in_second)) ||
	     in_second))
		return false;
	if (form == layout->form_sliced &&
	    !v8_word_read(memory, layout, *word - 1 + layout->sliced_start, &into))
		return false;
	*start += (uint32_t)(into >> 32);
	return v8_word_read(memory, layout, *word - 1 + at, word) && v8_is_object(*word);
}

bool v8_text_find(const struct memory_reader *memory, const struct v8_layout *layout, uint64_t word,
		  struct v8_flat *ret)
{
	uint32_t start = 0;

	if (!v8_is_object(word) ||
	    !memory_read(memory, word - 1 + layout->text_length, &ret->count, sizeof(ret->count)))
		return false;
	for (int i = 0; i < V8_FLAT_HOPS_MAX; i++) {
		uint16_t type = v8_type(memory, layout, word), form = type & layout->form_mask;

		if (type >= layout->text_types)
			return false;
		ret->is_narrow = type & layout->narrow_mask;
		ret->at = word - 1 + layout->text_characters;
		if (form == layout->form_external &&
		    !memory_read(memory, word - 1 + layout->external_resource + sizeof(ret->at),
				 &ret->at, sizeof(ret->at)))
			return false;
		if (form == 0 || form == layout->form_external) {
			ret->at += (uint64_t)start * (ret->is_narrow ? 1 : 2);
			return true;
		}
		if (!follow(memory, layout, form, &word, &start))
			return false;
	}
	return false;
}

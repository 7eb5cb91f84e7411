/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: Ruby's include/ruby/internal/core/{rstring,rarray,rclass}.h, internal/class.h, symbol.c,
 * st.c.
 */
#include "agent/runtime/ruby/ruby_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/wire/utf8.h"

enum object_kind {
	OBJECT_KIND_MASK = 0x1f,
	OBJECT_CLASS = 0x02,
	OBJECT_MODULE = 0x03,
	OBJECT_STRING = 0x05,
	OBJECT_ARRAY = 0x07,
	OBJECT_INCLUDED = 0x1c, /* a class that stands for an included module */
};

#define OBJECT_BYTES 40u
#define STRING_IS_LONG (1u << 13)
#define STRING_SHORT_SHIFT 14
#define STRING_SHORT_MAX 31u
#define ARRAY_IS_SHORT (1u << 13)
#define ARRAY_SHORT_SHIFT 15
#define CLASS_EXTENSION_AT 24u
#define VARIABLES_AT 8u
#define IDS_PER_BLOCK 512u

/* An object of Ruby; what follows its head is in it, or not. */
struct object {
	uint64_t address;
	uint64_t words[OBJECT_BYTES / 8]; /* flags, class, and on */
};

/* An array. */
struct items {
	uint64_t address, count;
};

struct variable {
	uint64_t hash, id, value;
};

static bool read_word(const struct ruby_memory *ruby, uint64_t address, uint64_t *ret)
{
	return memory_read(ruby->memory, address, ret, sizeof(*ret));
}

static bool read_object(const struct ruby_memory *ruby, uint64_t address, struct object *ret)
{
	ret->address = address;
	return address && !(address & 7) &&
	       memory_read(ruby->memory, address, ret->words, sizeof(ret->words));
}

static enum object_kind kind_of(const struct object *object)
{
	return (enum object_kind)(object->words[0] & OBJECT_KIND_MASK);
}

/* ---- strings ---- */

char *ruby_string(const struct ruby_memory *ruby, uint64_t address)
{
	char bytes[RUBY_TEXT_MAX];
	struct object object;
	uint64_t len, at;

	if (!read_object(ruby, address, &object) || kind_of(&object) != OBJECT_STRING)
		return NULL;
	len = object.words[2];
	at = object.words[3];
	if (!(object.words[0] & STRING_IS_LONG)) {
		at = address + ruby->layout->text;
		if (ruby->layout->text == 16)
			len = object.words[0] >> STRING_SHORT_SHIFT & STRING_SHORT_MAX;
	}
	if (len > sizeof(bytes))
		len = sizeof(bytes);
	if (len && !memory_read(ruby->memory, at, bytes, len))
		return NULL;
	/* It may have any encoding; nearly all are UTF-8. */
	return utf8_copy_repaired(slice_from(bytes, len));
}

static bool read_items(const struct ruby_memory *ruby, uint64_t address, struct items *ret)
{
	struct object object;
	uint32_t mask = (1u << ruby->layout->short_array_bits) - 1;

	if (!read_object(ruby, address, &object) || kind_of(&object) != OBJECT_ARRAY)
		return false;
	if (object.words[0] & ARRAY_IS_SHORT)
		*ret = (struct items){ address + 16, object.words[0] >> ARRAY_SHORT_SHIFT & mask };
	else
		*ret = (struct items){ object.words[4], object.words[2] };
	return true;
}

static bool read_item(const struct ruby_memory *ruby, const struct items *items, uint64_t index,
		      uint64_t *ret)
{
	return index < items->count && read_word(ruby, items->address + 8 * index, ret);
}

/* Code that was evaluated has no absolute path. */
char *ruby_path(const struct ruby_memory *ruby, uint64_t address)
{
	struct items items;
	uint64_t item;
	char *path = NULL;

	if (!read_items(ruby, address, &items))
		return ruby_string(ruby, address);
	if (read_item(ruby, &items, 1, &item))
		path = ruby_string(ruby, item);
	if (!path && read_item(ruby, &items, 0, &item))
		path = ruby_string(ruby, item);
	return path;
}

/* ---- ids ---- */

char *ruby_id_name(const struct ruby_memory *ruby, uint64_t id)
{
	uint64_t number = id > ruby->layout->last_operator ? id >> 4 : id, blocks, block, name;
	struct items items;

	if (!ruby->symbols || !read_word(ruby, ruby->symbols + 16, &blocks) ||
	    !read_items(ruby, blocks, &items) ||
	    !read_item(ruby, &items, number / IDS_PER_BLOCK, &block) ||
	    !read_items(ruby, block, &items) ||
	    !read_item(ruby, &items, number % IDS_PER_BLOCK * 2, &name))
		return NULL;
	return ruby_string(ruby, name);
}

/* ---- classes ---- */

static bool id_is(const struct ruby_memory *ruby, uint64_t id, const char *wanted)
{
	char *name = ruby_id_name(ruby, id);
	bool is = name && !strcmp(name, wanted);

	free(name);
	return is;
}

/* A variable of the class: st_table is {..., entries' start, bound, entries}. */
static bool find_variable(const struct ruby_memory *ruby, const struct object *class,
			  const char *name, uint64_t *ret)
{
	struct variable variables[RUBY_VARIABLES_MAX];
	uint64_t table, head[7], count;

	if (!read_word(ruby, class->words[CLASS_EXTENSION_AT / 8] + VARIABLES_AT, &table) ||
	    !table || !memory_read(ruby->memory, table, head, sizeof(head)))
		return false;
	count = head[5] < RUBY_VARIABLES_MAX ? head[5] : RUBY_VARIABLES_MAX;
	if (!count || !memory_read(ruby->memory, head[6], variables, count * sizeof(variables[0])))
		return false;
	for (size_t i = 0; i < count; i++)
		if (variables[i].hash != UINT64_MAX && id_is(ruby, variables[i].id, name)) {
			*ret = variables[i].value;
			return true;
		}
	return false;
}

/* NULL when it has none. */
static char *class_name(const struct ruby_memory *ruby, const struct object *class)
{
	uint64_t name;

	if (ruby->layout->class_form == RUBY_CLASS_VARIABLES
		    ? !find_variable(ruby, class, "__classpath__", &name)
		    : !read_word(ruby, class->address + ruby->layout->class_path, &name))
		return NULL;
	return ruby_string(ruby, name);
}

static bool find_attached(const struct ruby_memory *ruby, const struct object *class,
			  struct object *ret)
{
	uint64_t attached;

	if (ruby->layout->class_form == RUBY_CLASS_VARIABLES
		    ? !find_variable(ruby, class, "__attached__", &attached)
		    : !read_word(ruby, class->address + ruby->layout->attached, &attached))
		return false;
	return read_object(ruby, attached, ret) &&
	       (kind_of(ret) == OBJECT_CLASS || kind_of(ret) == OBJECT_MODULE);
}

char *ruby_class_prefix(const struct ruby_memory *ruby, uint64_t class_address)
{
	struct object class, real;
	struct strbuf text = { 0 };
	bool is_singleton = false;
	char *name, *copy;

	if (ruby->layout->class_form == RUBY_CLASS_UNKNOWN ||
	    !read_object(ruby, class_address, &class))
		return NULL;
	if (kind_of(&class) == OBJECT_INCLUDED) {
		if (!read_object(ruby, class.words[1], &real))
			return NULL;
		class = real;
	}
	if (kind_of(&class) == OBJECT_CLASS && class.words[0] & ruby->layout->singleton) {
		if (!find_attached(ruby, &class, &real))
			return NULL;
		class = real;
		is_singleton = true;
	}
	if (kind_of(&class) != OBJECT_CLASS && kind_of(&class) != OBJECT_MODULE)
		return NULL;
	name = class_name(ruby, &class);
	if (!name)
		return NULL;
	strbuf_add_text(&text, name);
	strbuf_add_byte(&text, is_singleton ? '.' : '#');
	copy = mem_strndup(text.data, text.len);
	strbuf_free(&text);
	free(name);
	return copy;
}

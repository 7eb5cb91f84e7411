/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/display/java_name.h"

#include <ctype.h>

#define DIMENSIONS_MAX 255u /* JVMS 4.3.2 */

/* The parts of a method's name; descriptor without its parentheses. */
struct method {
	struct slice class, name, parameters;
	bool has_descriptor;
};

static const struct {
	const char *code, *sign;
} operators[] = {
	{ "$tilde", "~" }, { "$eq", "=" },    { "$less", "<" },	   { "$greater", ">" },
	{ "$bang", "!" },  { "$hash", "#" },  { "$percent", "%" }, { "$up", "^" },
	{ "$amp", "&" },   { "$bar", "|" },   { "$times", "*" },   { "$div", "/" },
	{ "$plus", "+" },  { "$minus", "-" }, { "$colon", ":" },   { "$bslash", "\\" },
	{ "$qmark", "?" }, { "$at", "@" },
};

/* Dots for slashes, and the signs that Scala's compiler has spelled out. */
static void add_identifier(struct slice text, struct strbuf *out)
{
	for (size_t i = 0; i < text.len;) {
		struct slice rest = slice_tail(text, i);
		size_t taken = 0;

		for (size_t k = 0;
		     text.data[i] == '$' && k < sizeof(operators) / sizeof(*operators); k++) {
			if (!slice_starts_with(rest, slice_of(operators[k].code)))
				continue;
			strbuf_add_text(out, operators[k].sign);
			taken = strlen(operators[k].code);
			break;
		}
		if (!taken)
			strbuf_add_byte(out, text.data[i] == '/' ? '.' : text.data[i]);
		i += taken ? taken : 1;
	}
}

/* A class or method name holds none of these (JVMS 4.2.2), and profilers write no blanks. */
static bool is_identifier(struct slice text, const char *forbidden)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.data[i] <= ' ' || strchr(forbidden, text.data[i]))
			return false;
	return text.len > 0;
}

static const char *basic_type(char letter)
{
	switch (letter) {
	case 'B':
		return "byte";
	case 'C':
		return "char";
	case 'D':
		return "double";
	case 'F':
		return "float";
	case 'I':
		return "int";
	case 'J':
		return "long";
	case 'S':
		return "short";
	case 'Z':
		return "boolean";
	default:
		return NULL;
	}
}

/* The class without its package: "java/util/Map$Entry" -> "Map$Entry". */
static struct slice last_part(struct slice class)
{
	for (size_t i = class.len; i > 0; i--)
		if (class.data[i - 1] == '/')
			return slice_tail(class, i);
	return class;
}

/* Takes one type off the front and appends it; false when it is none. */
static bool take_type(struct slice *text, struct strbuf *out)
{
	size_t dimensions = 0, end;

	while (text->len && text->data[0] == '[' && ++dimensions <= DIMENSIONS_MAX)
		*text = slice_tail(*text, 1);
	if (!text->len || dimensions > DIMENSIONS_MAX)
		return false;
	if (basic_type(text->data[0])) {
		strbuf_add_text(out, basic_type(text->data[0]));
		*text = slice_tail(*text, 1);
	} else {
		end = slice_find_byte(*text, ';');
		if (text->data[0] != 'L' || end == SIZE_MAX || end < 2)
			return false;
		add_identifier(last_part(slice_from(text->data + 1, end - 1)), out);
		*text = slice_tail(*text, end + 1);
	}
	while (dimensions--)
		strbuf_add_text(out, "[]");
	return true;
}

static bool add_parameters(struct slice parameters, struct strbuf *out)
{
	strbuf_add_byte(out, '(');
	for (bool first = true; parameters.len; first = false) {
		if (!first)
			strbuf_add_text(out, ", ");
		if (!take_type(&parameters, out))
			return false;
	}
	strbuf_add_byte(out, ')');
	return true;
}

/* Cuts "(...)R" off the end. False when what is in parentheses is no descriptor. */
static bool cut_descriptor(struct slice *name, struct method *ret)
{
	size_t open = slice_find_byte(*name, '('), close;
	struct strbuf scratch = { 0 };
	struct slice result;
	bool is_good;

	if (open == SIZE_MAX)
		return true;
	close = slice_find_byte(*name, ')');
	if (close == SIZE_MAX || close < open)
		return false;
	ret->parameters = slice_from(name->data + open + 1, close - open - 1);
	result = slice_tail(*name, close + 1);
	is_good = slice_is(result, "V") || (take_type(&result, &scratch) && !result.len);
	is_good = is_good && add_parameters(ret->parameters, &scratch);
	strbuf_free(&scratch);
	name->len = open;
	ret->has_descriptor = true;
	return is_good;
}

static bool split(struct slice name, struct method *ret)
{
	size_t end;

	if (!cut_descriptor(&name, ret))
		return false;
	if (name.len > 2 && name.data[0] == 'L' && (end = slice_find_byte(name, ';')) != SIZE_MAX) {
		ret->class = slice_from(name.data + 1, end - 1);
		ret->name = slice_tail(name, end + 1);
		if (slice_starts_with(ret->name, SLICE_LITERAL("::")))
			ret->name = slice_tail(ret->name, 2);
		else if (ret->name.len && ret->name.data[0] == '.')
			ret->name = slice_tail(ret->name, 1);
		else
			return false;
	} else {
		for (end = name.len; end > 0 && name.data[end - 1] != '.'; end--)
			;
		if (!end)
			return false;
		ret->class = slice_from(name.data, end - 1);
		ret->name = slice_tail(name, end);
		/* Without a descriptor, only slashes tell it from names of other languages. */
		if (!ret->has_descriptor && slice_find_byte(ret->class, '/') == SIZE_MAX)
			return false;
	}
	return ret->class.len && ret->class.data[0] != '/' &&
	       is_identifier(ret->class, ";[()<>:*&,") && is_identifier(ret->name, ".;[()/:*&,");
}

bool java_name_read(struct slice name, bool with_parameters, struct strbuf *out)
{
	struct method method = { 0 };

	if (name.len > JAVA_NAME_BYTES_MAX || !split(name, &method))
		return false;
	add_identifier(method.class, out);
	if (out->data[out->len - 1] == '$') /* the class of an object of Scala */
		out->len--;
	strbuf_add_byte(out, '.');
	add_identifier(method.name, out);
	if (with_parameters && method.has_descriptor)
		add_parameters(method.parameters, out);
	return true;
}

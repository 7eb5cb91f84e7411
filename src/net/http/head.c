/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/head.h"

#include "base/mem.h"

void head_free(struct head *head)
{
	strbuf_free(&head->bytes);
	free(head->fields);
	free(head->headers);
	*head = (struct head){ 0 };
}

size_t head_cost(const struct head *head)
{
	return head->bytes.len + head->fields_count * HEAD_FIELD_BYTES;
}

static bool has_room(const struct head *head, size_t bytes)
{
	return bytes <= HEAD_BYTES_MAX - head_cost(head);
}

static struct head_span add_text(struct head *head, struct slice text)
{
	struct head_span span = { (uint32_t)head->bytes.len, (uint32_t)text.len };

	strbuf_add_slice(&head->bytes, text);
	return span;
}

bool head_set_method(struct head *head, struct slice method)
{
	if (!has_room(head, method.len))
		return false;
	head->method = add_text(head, method);
	return true;
}

bool head_set_target(struct head *head, struct slice target)
{
	if (target.len > HEAD_TARGET_BYTES_MAX || !has_room(head, target.len))
		return false;
	head->target = add_text(head, target);
	return true;
}

static void lower(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] >= 'A' && text[i] <= 'Z')
			text[i] += 'a' - 'A';
}

bool head_add(struct head *head, struct slice name, struct slice value)
{
	struct head_field *field;

	if (name.len > HEAD_BYTES_MAX || value.len > HEAD_BYTES_MAX ||
	    !has_room(head, name.len + value.len + HEAD_FIELD_BYTES))
		return false;
	mem_grow(head->fields, head->fields_count, head->fields_capacity);
	field = &head->fields[head->fields_count++];
	field->name = add_text(head, name);
	field->value = add_text(head, value);
	lower(head->bytes.data + field->name.offset, name.len);
	return true;
}

struct slice head_text(const struct head *head, struct head_span span)
{
	return slice_from(head->bytes.data ? head->bytes.data + span.offset : "", span.len);
}

void head_seal(struct head *head)
{
	head->headers = mem_new_array(struct net_header, head->fields_count);
	for (size_t i = 0; i < head->fields_count; i++)
		head->headers[i] = (struct net_header){
			.name = head_text(head, head->fields[i].name),
			.value = head_text(head, head->fields[i].value),
		};
}

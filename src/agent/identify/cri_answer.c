/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/identify/cri_answer.h"

#include "agent/identify/workload.h"
#include "codec/wire/pb.h"

#define POD WORKLOAD_META "pod_"

/* The fields that both kinds of list items have, and their numbers. */
struct item_shape {
	const char *name;
	uint32_t labels, annotations;
};

static const struct item_shape container_shape = { "Container", 8, 9 };
static const struct item_shape sandbox_shape = { "PodSandbox", 5, 6 };

void cri_put_list_request(struct strbuf *out, struct slice id)
{
	size_t filter = pb_begin(out, 1);

	pb_put_bytes(out, 1, id);
	pb_end(out, filter);
}

void cri_put_status_request(struct strbuf *out, struct slice id)
{
	pb_put_bytes(out, 1, id);
}

/* The bytes of one field of a message, the last of them as protobuf has it; empty: not there. */
static struct slice field_of(struct slice message, uint32_t number)
{
	struct pb_reader in = pb_reader_of(message);
	struct slice found = { 0 };
	struct pb_field field;

	while (pb_next(&in, &field))
		if (field.number == number && field.wire == PB_BYTES)
			found = field.bytes;
	if (in.problem)
		return slice_of("");
	return found;
}

/* A map's entries as meta labels, and that they are there. */
static void add_map(struct meta_labels *ret, struct slice message, uint32_t number,
		    const char *prefix, const char *present)
{
	struct pb_reader in = pb_reader_of(message);
	struct pb_field field;

	while (pb_next(&in, &field)) {
		if (field.number != number || field.wire != PB_BYTES)
			continue;
		meta_labels_add_of(ret, prefix, field_of(field.bytes, 1), field_of(field.bytes, 2));
		meta_labels_add_of(ret, present, field_of(field.bytes, 1), SLICE_LITERAL("true"));
	}
}

/* The item of a list with this id. 1, 0 or an error. */
static int find_item(struct slice message, const struct item_shape *shape, struct slice id,
		     struct slice *ret, struct err *err)
{
	struct pb_reader in = pb_reader_of(message);
	struct pb_field field;

	while (pb_next(&in, &field)) {
		struct pb_reader item;
		struct pb_field inner;
		bool is_it = false;

		if (field.number != 1 || field.wire != PB_BYTES)
			continue;
		item = pb_reader_into(&in, field.bytes);
		while (pb_next(&item, &inner))
			if (inner.number == 1 && inner.wire == PB_BYTES)
				is_it = slice_equal(inner.bytes, id);
		if (item.problem)
			return pb_fail(&item, shape->name, err);
		if (is_it) {
			*ret = field.bytes;
			return 1;
		}
	}
	return in.problem ? pb_fail(&in, shape->name, err) : 0;
}

/* What the user wrote, where the runtime tells it (since 1.29). */
static struct slice image_of(struct slice spec)
{
	struct slice written = field_of(spec, 18);

	return written.len ? written : field_of(spec, 1);
}

int cri_read_container(struct slice message, struct slice id, struct meta_labels *ret,
		       struct strbuf *ret_sandbox, struct strbuf *ret_image, struct err *err)
{
	struct slice item, name;
	int code = find_item(message, &container_shape, id, &item, err);

	if (code <= 0)
		return code;
	name = field_of(field_of(item, 3), 1);
	meta_labels_add(ret, POD "container_name", name);
	meta_labels_add(ret, POD "container_id", id);
	meta_labels_add(ret, "__meta_containerd_container_id", id);
	meta_labels_add(ret, "__meta_containerd_container_name", name);
	add_map(ret, item, container_shape.labels, "__meta_containerd_container_label_",
		"__meta_containerd_container_labelpresent_");
	strbuf_add_slice(ret_sandbox, field_of(item, 2));
	strbuf_add_slice(ret_image, image_of(field_of(item, 4)));
	return 1;
}

int cri_read_status(struct slice message, struct strbuf *ret_image, struct err *err)
{
	struct pb_reader in = pb_reader_of(message);
	struct slice status = { 0 };
	struct pb_field field;

	while (pb_next(&in, &field))
		if (field.number == 1 && field.wire == PB_BYTES)
			status = field.bytes;
	if (in.problem)
		return pb_fail(&in, "ContainerStatusResponse", err);
	strbuf_add_slice(ret_image, image_of(field_of(status, 8)));
	return 0;
}

int cri_read_sandbox(struct slice message, struct slice id, struct meta_labels *ret,
		     struct err *err)
{
	struct slice item, metadata;
	int code = find_item(message, &sandbox_shape, id, &item, err);

	if (code <= 0)
		return code;
	metadata = field_of(item, 2);
	meta_labels_add(ret, POD "name", field_of(metadata, 1));
	meta_labels_add(ret, POD "uid", field_of(metadata, 2));
	meta_labels_add(ret, WORKLOAD_META "namespace", field_of(metadata, 3));
	meta_labels_add(ret, "__meta_containerd_pod_name", field_of(metadata, 1));
	add_map(ret, item, sandbox_shape.labels, POD "label_", POD "labelpresent_");
	add_map(ret, item, sandbox_shape.annotations, POD "annotation_", POD "annotationpresent_");
	workload_add(ret);
	return 1;
}

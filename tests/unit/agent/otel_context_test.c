/* SPDX-License-Identifier: Apache-2.0 */
/* What processes say of themselves: OpenTelemetry's process context and environment variables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/identify/otel_context.h"
#include "agent/identify/process_reading.h"
#include "codec/wire/pb.h"

static void assert_label(const struct meta_labels *labels, const char *name, const char *want)
{
	struct slice got = meta_labels_find(labels, name);

	if (!slice_is(got, want))
		fail_msg("%s is \"%.*s\", not \"%s\"", name, SLICE_FMT(got), want);
}

static void put_text_attribute(struct strbuf *out, uint32_t number, const char *key,
			       const char *value)
{
	size_t pair = pb_begin(out, number), inner;

	pb_put_bytes(out, 1, slice_of(key));
	inner = pb_begin(out, 2);
	pb_put_bytes(out, 1, slice_of(value));
	pb_end(out, inner);
	pb_end(out, pair);
}

static void put_resource(struct strbuf *out, const char *service, const char *version)
{
	size_t resource = pb_begin(out, 1);

	put_text_attribute(out, 1, "service.name", service);
	put_text_attribute(out, 1, "service.version", version);
	pb_end(out, resource);
}

static void a_context_names_the_service(void **state)
{
	struct meta_labels labels = { 0 };
	struct strbuf payload = { 0 };

	(void)state;
	put_resource(&payload, "checkout", "2.7.1");
	put_text_attribute(&payload, 2, "threadlocal.schema_version", "tls_v1");
	assert_int_equal(otel_context_decode(strbuf_slice(&payload), &labels, NULL), 0);
	assert_label(&labels, "__meta_otel_service_name", "checkout");
	assert_label(&labels, "__meta_otel_service_version", "2.7.1");
	assert_label(&labels, "__meta_otel_threadlocal_schema_version", "tls_v1");
	meta_labels_free(&labels);
	strbuf_free(&payload);
}

static void values_of_all_scalar_kinds_are_taken(void **state)
{
	/* { on: true, n: 2^63 - 1, d: 1.5, l: [] } */
	static const uint8_t resource[] = {
		0x0a, 0x34, 0x0a, 0x08, 0x0a, 0x02, 0x6f, 0x6e, 0x12, 0x02, 0x10, 0x01, 0x0a, 0x0f,
		0x0a, 0x01, 0x6e, 0x12, 0x0a, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0x7f, 0x0a, 0x0e, 0x0a, 0x01, 0x64, 0x12, 0x09, 0x21, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0xf8, 0x3f, 0x0a, 0x07, 0x0a, 0x01, 0x6c, 0x12, 0x02, 0x2a, 0x00,
	};
	struct meta_labels labels = { 0 };

	(void)state;
	assert_int_equal(otel_context_decode(slice_from(resource, sizeof(resource)), &labels, NULL),
			 0);
	assert_label(&labels, "__meta_otel_on", "true");
	assert_label(&labels, "__meta_otel_n", "9223372036854775807");
	assert_label(&labels, "__meta_otel_d", "1.5");
	assert_int_equal(labels.count, 3); /* a list is no value of a label */
	meta_labels_free(&labels);
}

static void damaged_contexts_are_refused(void **state)
{
	struct meta_labels labels = { 0 };
	struct strbuf payload = { 0 };
	size_t refused = 0;

	(void)state;
	put_resource(&payload, "checkout", "2.7.1");
	for (size_t len = 1; len < payload.len; len++)
		refused += otel_context_decode(slice_from(payload.data, len), &labels, NULL) < 0;
	assert_int_equal(refused, payload.len - 1);
	meta_labels_free(&labels);
	strbuf_free(&payload);
}

static void a_header_of_another_version_is_none(void **state)
{
	uint8_t bytes[OTEL_CONTEXT_HEADER_BYTES] = "OTEL_CTX";
	uint32_t version = 2, len = 100;
	uint64_t published = 7, address = 0x1000;
	struct otel_context_header header;

	(void)state;
	memcpy(bytes + 8, &version, 4);
	memcpy(bytes + 12, &len, 4);
	memcpy(bytes + 24, &address, 8);
	assert_false(otel_context_header_parse(bytes, &header)); /* it is being written */
	memcpy(bytes + 16, &published, 8);
	assert_true(otel_context_header_parse(bytes, &header));
	assert_int_equal(header.address, 0x1000);
	bytes[8] = 3;
	assert_false(otel_context_header_parse(bytes, &header));
	bytes[8] = 2;
	len = OTEL_CONTEXT_BYTES_MAX + 1;
	memcpy(bytes + 12, &len, 4);
	assert_false(otel_context_header_parse(bytes, &header));
}

static void mappings_of_a_context_are_known_by_name(void **state)
{
	uint64_t start = 0;

	(void)state;
	assert_true(otel_context_is_mapping(
		SLICE_LITERAL(
			"7f00a000-7f00b000 rw-s 00000000 00:01 77   /memfd:OTEL_CTX (deleted)"),
		&start));
	assert_int_equal(start, 0x7f00a000);
	assert_true(otel_context_is_mapping(
		SLICE_LITERAL("10-20 rw-p 00000000 00:00 0    [anon:OTEL_CTX]"), &start));
	assert_false(otel_context_is_mapping(
		SLICE_LITERAL("10-20 rw-p 00000000 00:00 0    [anon:OTEL_CTX2]"), &start));
	assert_false(otel_context_is_mapping(SLICE_LITERAL("zz-20 rw-p [anon:OTEL_CTX]"), &start));
}

static void a_variable_fills_what_is_missing(void **state)
{
	struct meta_labels labels = { 0 };

	(void)state;
	meta_labels_add(&labels, "__meta_otel_service_name", SLICE_LITERAL("kept"));
	otel_context_add_variable(
		SLICE_LITERAL("service.name=other, service.version=1%2C5 ,bad,=x,k=%zz%4"),
		&labels);
	assert_label(&labels, "__meta_otel_service_name", "kept");
	assert_label(&labels, "__meta_otel_service_version", "1,5");
	assert_label(&labels, "__meta_otel_k", "%zz%4");
	assert_int_equal(labels.count, 3);
	meta_labels_free(&labels);
}

/* This process publishes a context as OTEP 4719 says. */
static void a_process_is_read_from_outside(void **state)
{
	struct process_reading reading = { .proc = open("/proc/self", O_PATH | O_DIRECTORY) };
	int memory = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	struct strbuf payload = { 0 };
	uint32_t version = 2, len;
	uint64_t published = 1, address;
	uint8_t *header;

	(void)state;
	assert_int_equal(ftruncate(memory, 4096), 0);
	header = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	assert_true(header != MAP_FAILED);
	put_resource(&payload, "self", "1");
	len = (uint32_t)payload.len;
	address = (uintptr_t)payload.data;
	memcpy(header, "OTEL_CTX", 8);
	memcpy(header + 8, &version, 4);
	memcpy(header + 12, &len, 4);
	memcpy(header + 16, &published, 8);
	memcpy(header + 24, &address, 8);
	reading.is_young = true;
	process_reading_do(&reading);
	assert_label(&reading.labels, "__meta_otel_service_name", "");
	assert_true(meta_labels_find(&reading.labels, "__meta_process_cmdline").len > 0);
	meta_labels_free(&reading.labels);
	reading.is_young = false;
	process_reading_do(&reading);
	assert_label(&reading.labels, "__meta_otel_service_name", "self");
	assert_int_equal(reading.context_at, (uintptr_t)header);
	assert_true(meta_labels_find(&reading.labels, "__meta_process_cmdline").len > 0);
	address = 16; /* nothing is there */
	memcpy(header + 24, &address, 8);
	meta_labels_free(&reading.labels);
	process_reading_do(&reading);
	assert_label(&reading.labels, "__meta_otel_service_name", "");
	munmap(header, 4096);
	close(memory);
	strbuf_free(&payload);
	process_reading_fini(&reading);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_context_names_the_service),
		cmocka_unit_test(values_of_all_scalar_kinds_are_taken),
		cmocka_unit_test(damaged_contexts_are_refused),
		cmocka_unit_test(a_header_of_another_version_is_none),
		cmocka_unit_test(mappings_of_a_context_are_known_by_name),
		cmocka_unit_test(a_variable_fills_what_is_missing),
		cmocka_unit_test(a_process_is_read_from_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP/2 engine after the preface, cut in two as the first byte says. Requests of the first
 * part may still be running when the second arrives.
 */
#include "../unit/net/engine_fake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice bytes = slice_from(data + 1, size ? size - 1 : 0);
	struct engine_fake fake;
	size_t cut;

	if (!size)
		return 0;
	cut = bytes.len * (data[0] >> 1) / 128;
	engine_fake_word = 'a';
	engine_fake_init(&fake, http2_new);
	engine_fake_feed(&fake, SLICE_LITERAL("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
	engine_fake_feed(&fake, slice_from(bytes.data, cut));
	if (data[0] & 1)
		engine_fake_run(&fake);
	engine_fake_feed(&fake, slice_tail(bytes, cut));
	engine_fake_run(&fake);
	engine_fake_word = 'b';
	engine_fake_pass(&fake, 40 * CLOCK_NS_PER_S);
	engine_fake_free(&fake);
	return 0;
}

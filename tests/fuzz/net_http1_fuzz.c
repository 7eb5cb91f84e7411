/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP/1 engine, whole and cut in two: the first byte says where the cut is. Requests run on
 * the spot, so the decoding of bodies, parameters and gRPC-Web frames is in it too.
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
	cut = bytes.len * data[0] / 256;
	engine_fake_init(&fake, http1_new);
	engine_fake_feed(&fake, slice_from(bytes.data, cut));
	engine_fake_run(&fake);
	engine_fake_pass(&fake, CLOCK_NS_PER_S);
	engine_fake_feed(&fake, slice_tail(bytes, cut));
	engine_fake_run(&fake);
	engine_fake_pass(&fake, 40 * CLOCK_NS_PER_S);
	engine_fake_free(&fake);
	return 0;
}

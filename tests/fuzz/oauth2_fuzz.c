/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a token server's answer, whose token can stand in a header, or an error. */
#include <stdlib.h>

#include "remote/access/oauth2.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf got = { 0 };
	struct err err = { 0 };
	int64_t lasts_ns = -1;

	if (oauth2_read_answer(slice_from(data, size), &got, &lasts_ns, &err)) {
		if (!err.message[0] || got.len)
			abort();
	} else {
		if (lasts_ns < 0 || lasts_ns > 3600 * CLOCK_NS_PER_S || !got.len)
			abort();
		for (size_t i = 0; i < got.len; i++)
			if ((unsigned char)got.data[i] < ' ' || got.data[i] == 0x7f)
				abort();
	}
	strbuf_free(&got);
	return 0;
}

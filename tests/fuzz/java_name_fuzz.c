/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the JVM's methods from any bytes: what is refused leaves nothing behind. */
#include <stdlib.h>

#include "server/resolve/display/java_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice name = slice_from((const char *)data, size);

	for (int full = 0; full < 2; full++) {
		struct strbuf out = { 0 };

		if (java_name_read(name, full, &out) != (out.len > 0))
			abort();
		strbuf_free(&out);
	}
	return 0;
}

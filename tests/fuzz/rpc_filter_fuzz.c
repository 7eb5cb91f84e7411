/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are one of Parca's Filter messages or an error; what is read is spelled and understood.
 */
#include <stdint.h>
#include <stdlib.h>

#include "server/serve/rpc/rpc_filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct filter_list filters = { 0 };
	struct slice bytes = slice_from(data, size);
	struct pb_reader outer = pb_reader_of(bytes);
	struct err err = { 0 };

	if (rpc_filter_read(&outer, bytes, &filters, &err) && !err.message[0])
		abort();
	filter_list_free(&filters);
	return 0;
}

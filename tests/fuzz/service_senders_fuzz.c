/* SPDX-License-Identifier: Apache-2.0 */
/* Any file is a list of senders or an error; what was read is what is read of it when written. */
#include <stdlib.h>

#include "server/serve/api/service_senders.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct service_senders *first = service_senders_new(NULL), *second;
	struct strbuf once = { 0 }, twice = { 0 };

	if (!service_senders_read(first, slice_from(data, size), NULL)) {
		second = service_senders_new(NULL);
		service_senders_write(first, &once);
		if (service_senders_read(second, strbuf_slice(&once), NULL))
			abort();
		service_senders_write(second, &twice);
		if (!slice_equal(strbuf_slice(&once), strbuf_slice(&twice)))
			abort();
		service_senders_free(second);
	}
	service_senders_free(first);
	strbuf_free(&once);
	strbuf_free(&twice);
	return 0;
}

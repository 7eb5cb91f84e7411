/* SPDX-License-Identifier: Apache-2.0 */
/* Records of uploaded files: any bytes; what is accepted survives being written and read again. */
#include <stdlib.h>

#include "server/debuginfo/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct debuginfo_record record, again;
	struct strbuf first = { 0 }, second = { 0 };

	if (!debuginfo_record_parse(slice_from(data, size), &record, NULL)) {
		debuginfo_record_write(&record, &first);
		if (first.len > DEBUGINFO_RECORD_BYTES_MAX ||
		    debuginfo_record_parse(strbuf_slice(&first), &again, NULL))
			abort();
		debuginfo_record_write(&again, &second);
		if (!slice_equal(strbuf_slice(&first), strbuf_slice(&second)))
			abort();
	}
	strbuf_free(&first);
	strbuf_free(&second);
	return 0;
}

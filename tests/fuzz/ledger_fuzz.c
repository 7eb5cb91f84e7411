/* SPDX-License-Identifier: Apache-2.0 */
/* State files, their checksum repaired. */
#include <stdint.h>

#include "base/hash.h"
#include "server/persist/batch/ledger.h"

#define CHECKED_FROM 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf bytes = { 0 };
	struct ledger ledger;
	struct err err;

	strbuf_add(&bytes, data, size);
	if (size >= CHECKED_FROM) {
		uint32_t crc = hash_crc32c(0, bytes.data + CHECKED_FROM, size - CHECKED_FROM);

		memcpy(bytes.data + 12, &crc, sizeof(crc));
	}
	if (!ledger_decode_file(strbuf_slice(&bytes), 2, &ledger, &err))
		ledger_fini(&ledger);
	strbuf_free(&bytes);
	return 0;
}

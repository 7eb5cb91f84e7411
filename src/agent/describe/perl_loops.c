/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/perl_loops.h"

#include "agent/bpf/script_proof.h"
#include "agent/bpf/shared.h"
#include "agent/runtime/runtime_file.h"

/* What the binary that the address lies in says of Perl; NULL = it has none. */
static const struct perl_layout *perl_at(const struct space *space, uint64_t address,
					 uint64_t *ret_offset)
{
	const struct mapping *mapping = space_find(space, address);
	const struct runtime_file *file =
		mapping && mapping->binary ? mapping->binary->runtime : NULL;

	if (!file || file->layout.kind != RUNTIME_PERL)
		return NULL;
	*ret_offset = address - mapping->start + mapping->offset;
	return &file->layout.perl;
}

static bool is_in_catch(const struct space *space, uint64_t address)
{
	uint64_t offset;
	const struct perl_layout *perl = perl_at(space, address, &offset);

	return perl && offset - perl->catches.offset < perl->catches.bytes;
}

static bool is_in_program(const struct space *space, uint64_t address)
{
	uint64_t offset;
	const struct perl_layout *perl = perl_at(space, address, &offset);

	return perl && offset - perl->program.offset < perl->program.bytes;
}

void perl_loops_fit(const struct space *space, const uint64_t *addresses, size_t count, bool *loops)
{
	bool goes_on = false; /* of the next loop, which is outside */

	for (size_t i = 0; i < count; i++) {
		if (!loops[i])
			continue;
		loops[i] = !goes_on;
		goes_on = i + 1 < count && is_in_catch(space, addresses[i + 1]);
	}
}

size_t perl_loops_frames(const struct space *space, const uint64_t *addresses, size_t count,
			 bool is_complete, const uint64_t *words, size_t script_count)
{
	const uint64_t *last = script_count ? words + 2 * (script_count - 1) : NULL;

	if (!last || last[0] & (SCRIPT_IS_CUT | SCRIPT_IS_MARK) ||
	    script_perl_kind(last[0] >> SCRIPT_PLACE_SHIFT) != PERL_CODE_PROGRAM)
		return script_count;
	for (size_t i = 0; i < count; i++)
		if (is_in_program(space, addresses[i]))
			return script_count;
	return is_complete || script_count == 1 ? script_count - 1 : script_count;
}

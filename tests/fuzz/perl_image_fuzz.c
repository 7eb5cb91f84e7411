/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's memory that is not what Perl keeps there: the walk of its contexts ends, within its
 * bounds, and what is read of subs, packages and files stays within theirs. The first bytes choose
 * the layout.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/bpf/shared.h"
#include "agent/runtime/perl/perl_code.h"
#include "agent/runtime/splice.h"
#include "base/slice.h"
#include "image_fuzz.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define CONTEXTS_MAX 4096
#define TEXT_MAX                                                                                   \
	(2 * 3 * PERL_TEXT_MAX + 32) /* bytes that are no UTF-8 become two or three each           \
				      */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#include "agent/bpf/script_perl.h"

static void check_code(const struct perl_layout *layout, uint64_t word)
{
	struct memory_reader memory = { read_image, NULL };
	struct script_code code;

	if (perl_code_read(&memory, layout, 0, word >> SCRIPT_PLACE_SHIFT, SCRIPT_ADDRESS(word),
			   &code) != SCRIPT_CODE_READ)
		return;
	if (strlen(code.function) > TEXT_MAX || strlen(code.file) > TEXT_MAX ||
	    !slice_is_utf8(slice_of(code.function)) || !slice_is_utf8(slice_of(code.file)) ||
	    code.first_line > INT32_MAX)
		abort();
	script_code_fini(&code);
}

static void check_walk(const struct script_process *process, const struct perl_layout *layout)
{
	static struct sample sample;
	static struct splice_step steps[SPLICE_STEPS_MAX];
	struct script script = { .process = *process, .room = SCRIPT_FRAMES_MAX };
	bool loops[8] = { true, false, true };
	struct splice_natives natives = { loops, 8, 5, image_bytes & 1 };
	size_t frames, count = 0;

	if (!script_perl_start(&script, BASE))
		return;
	while (count++ < CONTEXTS_MAX && script_perl_frame(&script, &sample))
		;
	if (count > CONTEXTS_MAX)
		script_perl_end(&script, &sample);
	frames = script.at / 2;
	if (frames > SCRIPT_FRAMES_MAX + 1 || script.at % 2 ||
	    splice_frames(&natives, (const uint64_t *)sample.frames, frames, steps) >
		    SPLICE_STEPS_MAX)
		abort();
	for (size_t i = 0; i < frames && i < 8; i++)
		if (!(sample.frames[2 * i] & SCRIPT_IS_CUT))
			check_code(layout, sample.frames[2 * i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script_process process = { .kind = SCRIPT_PERL };
	struct perl_layout layout;

	if (size < 8)
		return 0;
	image = data + 8;
	image_bytes = size - 8;
	layout = (struct perl_layout){ .is_threaded = data[0] & 1,
				       .has_names_in_bodies = data[0] & 2,
				       .statement = BASE + data[1] };
	process.state_form = data[0] & 4 ? SCRIPT_STATE_KEY_NUMBER : SCRIPT_STATE_GLOBAL;
	process.state_at = BASE + data[2];
	process.perl = (struct script_perl_layout){ .stack = data[3],
						    .statement = data[4],
						    .context_bytes = 104,
						    .sub = data[5],
						    .links_calls = data[0] >> 3 & 1,
						    .file_bytes = layout.is_threaded ? 16 : 8 };
	check_walk(&process, &layout);
	check_code(&layout, (uint64_t)data[7] << 56 | (BASE + (data[6] & 0xf8u)));
	return 0;
}

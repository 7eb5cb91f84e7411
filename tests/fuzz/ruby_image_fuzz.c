/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's memory that is not what Ruby keeps there: the walk of its frames ends, within its
 * bounds, and what is read of methods, blocks, classes and lines stays within theirs. The first
 * bytes choose the layout.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/bpf/shared.h"
#include "agent/runtime/ruby/ruby_code.h"
#include "agent/runtime/ruby/ruby_lines.h"
#include "agent/runtime/splice.h"
#include "image_fuzz.h"
#include "ruby_layout_31.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define TEXT_MAX (2 * 3 * RUBY_TEXT_MAX + 8) /* bytes that are no text become three each */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#include "agent/bpf/script_ruby.h"

static void check_code(const struct ruby_layout *layout, uint64_t address)
{
	struct memory_reader memory = { read_image, NULL };
	struct strbuf label = { 0 };
	struct script_code code;

	if (ruby_code_read(&memory, layout, 0, address, &code) != SCRIPT_CODE_READ)
		return;
	check_script_code(&code, TEXT_MAX, ruby_line);
	ruby_full_label(&code, &code, &label);
	strbuf_free(&label);
	script_code_fini(&code);
}

static void check_walk(const struct script_process *process, const struct ruby_layout *layout)
{
	static struct sample sample;
	static struct splice_step steps[SPLICE_STEPS_MAX];
	struct script script = { .process = *process, .room = SCRIPT_FRAMES_MAX };
	bool loops[8] = { true, false, true };
	struct splice_natives natives = { loops, 8, 5, image_bytes & 1 };
	size_t frames, count = 0;

	if (!script_ruby_start(&script, BASE))
		return;
	while (count++ < 2 * SCRIPT_FRAMES_MAX && script_ruby_frame(&script, &sample))
		;
	if (script.at > SAMPLE_WORDS_MAX - SAMPLE_FRAMES_MAX || script.at % 2)
		abort();
	frames = script.at / 2;
	if (splice_frames(&natives, (const uint64_t *)sample.frames, frames, steps) >
	    SPLICE_STEPS_MAX)
		abort();
	for (size_t i = 0; i < frames && i < 8; i++)
		check_code(layout, SCRIPT_ADDRESS(sample.frames[2 * i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script_process process = { .kind = SCRIPT_RUBY };
	struct ruby_layout layout = { RUBY_LAYOUT_31, .symbols = BASE };

	if (size < 8)
		return 0;
	image = data + 8;
	image_bytes = size - 8;
	process.state_form = data[0] & 3;
	process.state_at = data[0] & 4 ? BASE + data[1] : data[1];
	process.ruby.frame_bytes = data[2];
	if (data[3] & 1)
		layout.class_form = RUBY_CLASS_FIELD;
	if (data[3] & 2)
		layout.text = 24;
	layout.class_path = data[4];
	layout.attached = data[5];
	layout.line_bytes = data[6];
	layout.symbols = BASE + data[7];
	check_walk(&process, &layout);
	check_code(&layout, BASE + (data[1] & 0xf8u));
	return 0;
}

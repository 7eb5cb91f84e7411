/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's memory that is not what PHP keeps there: the walk of its frames ends, within its
 * bounds, and what is read of functions, classes and lines stays within theirs. The first bytes
 * choose the layout.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/bpf/shared.h"
#include "agent/runtime/line_table.h"
#include "agent/runtime/php/php_code.h"
#include "agent/runtime/splice.h"
#include "image_fuzz.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define TEXT_MAX (2 * 3 * PHP_TEXT_MAX + 8) /* bytes that are no text become three each */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#include "agent/bpf/script_php.h"

static uint32_t line_in_table(struct slice lines, uint32_t position)
{
	return php_line(lines, PHP_LINES_TABLE, position);
}

static void check_code(const struct php_layout *layout, uint64_t key, uint64_t address)
{
	struct memory_reader memory = { read_image, NULL };
	struct strbuf label = { 0 };
	struct script_code code;

	if (php_code_read(&memory, layout, key, address, &code) != SCRIPT_CODE_READ)
		return;
	check_script_code(&code, TEXT_MAX, line_in_table);
	php_label(&code, false, &label);
	strbuf_free(&label);
	script_code_fini(&code);
}

static bool walk_frames(struct script *script, uint64_t position, struct sample *sample)
{
	size_t count = 0;

	script->at = 0;
	script->room = SCRIPT_FRAMES_MAX;
	script->sample++;
	script_window_reset(&script->frames, 0);
	if (!script_php_start(script))
		return false;
	script->lasting.scope = 1; /* a request */
	script->limit = position;
	while (count++ < 2 * SCRIPT_FRAMES_MAX && script_php_frame(script, sample))
		;
	if (script->at > SAMPLE_WORDS_MAX - SAMPLE_FRAMES_MAX || script->at % 2)
		abort();
	return true;
}

static void check_walk(const struct script_process *process, const struct php_layout *layout,
		       uint64_t position)
{
	static struct sample sample, next;
	static struct splice_step steps[SPLICE_STEPS_MAX];
	static struct script script;
	bool loops[8] = { true, false, true };
	struct splice_natives natives = { loops, 8, 5, image_bytes & 1 };
	size_t frames;

	script = (struct script){ .process = *process };
	if (!walk_frames(&script, position, &sample))
		return;
	frames = script.at / 2;
	/* With what is known of functions by then. */
	if (!walk_frames(&script, position, &next) || script.at != 2 * frames ||
	    memcmp(&sample.frames, &next.frames, 16 * frames) != 0)
		abort();
	if (splice_frames(&natives, (const uint64_t *)sample.frames, frames, steps) >
		    SPLICE_STEPS_MAX ||
	    (splice_runs_on_stack((const uint64_t *)sample.frames, frames) > frames &&
	     splice_runs_on_stack((const uint64_t *)sample.frames, frames) != SIZE_MAX))
		abort();
	for (size_t i = 0; i < frames && i < 8; i++)
		check_code(layout, sample.frames[2 * i] >> SCRIPT_PLACE_SHIFT,
			   SCRIPT_ADDRESS(sample.frames[2 * i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script_process process = { .kind = SCRIPT_PHP };
	struct php_layout layout;

	if (size < 8)
		return 0;
	image = data + 8;
	image_bytes = size - 8;
	layout = (struct php_layout){ .last = data[0], .opcodes = data[1], .file = data[2] };
	process.state_form = SCRIPT_STATE_GLOBAL;
	process.state_at = BASE + data[3];
	process.php.file = (php_layout_file(&layout) ^ data[7]) | 2; /* behind the class */
	process.php.generator = data[6];
	process.key_at = BASE + data[5];
	check_walk(&process, &layout, data[4]);
	check_code(&layout, 0, BASE + (data[5] & 0xf8u));
	check_code(&layout, SCRIPT_PHP_IS_FILE, BASE + (data[5] & 0xf8u));
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_translation - the frames that V8 would make of one frame of optimized code, if it had to leave
 * that code at a call: which functions are inlined there, for certain.
 *
 *   begin {bytes back to the basis, frames, frames of JavaScript}, then for each frame, from the
 *   outermost on: what it is {..., its function: a literal, ...}, and where its values are
 *
 * Instructions that are like those of the basis, another translation before this one, are left out:
 * "the next N are as there". The form is known to be right if the frames are as many as the
 * beginning says, and the next translation begins behind the last one.
 *
 * Layouts: V8's src/deoptimizer/translation-opcode.h, frame-translation-builder.cc. Hostile bytes
 * give no frames.
 */
#ifndef FIRN_AGENT_RUNTIME_V8_V8_TRANSLATION_H
#define FIRN_AGENT_RUNTIME_V8_V8_TRANSLATION_H

#include <stddef.h>
#include <stdint.h>

#define V8_TRANSLATION_CODES 45u /* kinds of instructions, in most versions */

/*
 * The literals of the functions of the translation at `at`, outermost first, without V8's own. How
 * many; 0 = they are more than `max`, or the bytes are no translation.
 */
size_t v8_translation_read(const uint8_t *bytes, size_t len, size_t at, uint32_t codes,
			   uint32_t *ret, size_t max);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * script_php - the frames of PHP, from the innermost outwards.
 *
 *   executor globals -> call frame -> previous call frame -> ...
 *                       call frame -> function
 *
 * Each frame gives its function and how far into it the instruction is that it is at. The loop
 * keeps that of the innermost frame in a register, and writes it to the frame before calls. Frames
 * that the loop was entered for are flagged by PHP itself; a function in C that C has called has
 * the flag, too, but no loop.
 *
 * Without opcache each request compiles its functions anew, and copies of a closure are objects of
 * their own. So a function's proof says what the function is and nothing of where it is: the texts
 * of its names are read. It is longer than those of others: SCRIPT_PLACE_SHIFT. The code of a file,
 * which has no name, is gone when it has run: the address of the file's name stands for it, and the
 * line for its position.
 *
 * That is a read of each function and one of each name, which may lie anywhere: most of what a
 * stack of many functions costs. But until its request ends, a function with a name stays what and
 * where it is: PHP takes memory for it from an arena, or has it in opcache's, and frees nothing of
 * that before. (Only copies come and go, those of closures and what stands in for methods that
 * there are not, which from 8.2 on are all flagged as below.) The next request has another time, in
 * microseconds. So what was read of a function holds for its address in the same process and
 * request (script_lasting.h). The time is 0 until something has asked for it: opcache and FPM do
 * when a request begins, the command line too, and else the first use of $_SERVER.
 *
 * A generator that runs another one by `yield from` has no frame in the list: a placeholder stands
 * there for all of them but the one that runs, and names the outermost. Each names the one that it
 * runs, so they are found from the outermost on, and noted from the innermost on.
 *
 * Plain C, like script.h. Layouts: PHP's Zend/zend_compile.h.
 */
#ifndef FIRN_AGENT_BPF_SCRIPT_PHP_H
#define FIRN_AGENT_BPF_SCRIPT_PHP_H

#include "agent/bpf/row.h"
#include "agent/bpf/script.h"

#define SCRIPT_PHP_FRAME_BYTES 56u
#define SCRIPT_PHP_HEAD_BYTES 24u /* of a function */
#define SCRIPT_PHP_CLASS_NAME_AT 8u
#define SCRIPT_PHP_LINE_AT 24u /* in an instruction */
#define SCRIPT_PHP_GENERATORS_MAX 64
#define SCRIPT_PHP_GENERATOR_BYTES 512u

/* In a call frame. */
enum script_php_word {
	PHP_FRAME_POSITION = 0,
	PHP_FRAME_GENERATOR = 2, /* whose frame it is */
	PHP_FRAME_FUNCTION = 3,
	PHP_FRAME_OBJECT = 4,
	PHP_FRAME_FLAGS = 5,
	PHP_FRAME_PREVIOUS = 6,
};

/* In a function. */
enum script_php_function_word {
	PHP_FUNCTION_KIND = 0,
	PHP_FUNCTION_NAME = 1,
	PHP_FUNCTION_CLASS = 2,
};

#define PHP_FLAG_TOP (1u << 17)	    /* of a frame: C has called it */
#define PHP_FLAG_CLOSURE (1u << 22) /* ... a closure, which has its own copy of the function */
#define PHP_VALUE_OBJECT 8u	    /* the low byte of the same word */
#define PHP_KIND_INTERNAL 1u	    /* of a function: in C */
#define PHP_KIND_USER 2u
#define PHP_INSTRUCTION_BYTES 32u

/*
 * Of a function, in its first word: what stands in for a method that there is not, and copies that
 * closures have, of functions, too, that one was made of.
 */
#define PHP_FUNCTION_PASSES (1ull << (32 + 18) | 1ull << (32 + 22) | 1ull << (32 + 23))

/* Where the loop has its frame and position, of DWARF's registers. */
#define PHP_REGISTER_FRAME 14
#define PHP_REGISTER_POSITION 15

/*
 * Whether the time of a request, a double in seconds, is no other request's: it has microseconds.
 * Apache's module has milliseconds before 8.2, and two requests may begin in one.
 */
static __always_inline bool script_php_is_exact(__u64 time)
{
	__u64 bits = 1023 + 52 - (time >> 52), fraction; /* behind the point */

	if (bits - 16 > 8)
		return false; /* of no year in which this runs, or not known yet */
	fraction = time & ((1ull << bits) - 1);
	return ((fraction * 1000000 + (1ull << (bits - 1))) >> bits) % 1000 != 0;
}

/* The request at hand, by its time, unless that does not say it. */
static __always_inline void script_php_start_request(struct script *script)
{
	const struct script_process *process = &script->process;
	__u64 time = 0;

	script->lasting.scope = 0;
	if (process->key_at && !walk_read(&time, sizeof(time), process->key_at) &&
	    script_php_is_exact(time))
		script_lasting_begin(&script->lasting, script->sample,
				     script_had_round(&script->had),
				     process->start_ns + process->exec_id, time);
}

/* Sets script->frame. False when the process runs no PHP. */
static __always_inline bool script_php_start(struct script *script)
{
	script->frame = 0;
	script->limit = 0;
	script->php.left = 0;
	script->php.class.owner = script->php.file.owner = 0;
	if (walk_read(&script->frame, sizeof(script->frame), script->process.state_at) ||
	    !script->frame)
		return false;
	script_php_start_request(script);
	return true;
}

/* True if the address is in the loop. */
static __always_inline bool script_php_is_loop(const struct script_process *process, __u64 address)
{
	return address - process->php.code_start - process->php.loop_start <
	       process->php.loop_bytes;
}

/* What the text at an address says; where it is not resident, its address stands for that. */
WALK_VERIFIED_ONCE long script_php_read_text(struct script_text *text, __u64 address)
{
	__u64 in_page = SCRIPT_PAGE_BYTES - (address & (SCRIPT_PAGE_BYTES - 1));
	__u64 bytes = 8 * (SCRIPT_TEXT_HEAD_WORDS + SCRIPT_TEXT_WORDS), wanted;

	if (!text)
		return 0;
	text->proof = address;
	text->is_sure = false;
	if (!address || address & 7)
		return 0;
	if (bytes > in_page)
		bytes = in_page;
	if (bytes < 8 * SCRIPT_TEXT_HEAD_WORDS)
		bytes = 8 * SCRIPT_TEXT_HEAD_WORDS;
	if (walk_read(text->words, bytes & (SCRIPT_TEXT_BYTES_MAX - 8), address))
		return 0;
	wanted = script_text_bytes(text->words);
	if (wanted > bytes && walk_read(text->words, wanted & (SCRIPT_TEXT_BYTES_MAX - 8), address))
		return 0;
	text->proof = script_text_proof(text->words, address);
	text->is_sure = text->words[SCRIPT_TEXT_LENGTH_WORD] <= 8 * SCRIPT_TEXT_WORDS ||
			text->words[SCRIPT_TEXT_HASH_WORD];
	return 0;
}

/* The same of a text that frames next to one another often have in common, by what has it. */
static __always_inline void script_php_read_said(struct script *script, struct script_said *said,
						 __u64 owner, __u64 address)
{
	script_php_read_text(&script->php.text, address);
	said->owner = owner;
	said->proof = script->php.text.proof;
	said->is_sure = script->php.text.is_sure;
}

static __always_inline __u64 script_php_file(struct script *script, __u64 path)
{
	struct script_said *said = &script->php.file;

	if (!path || said->owner != path)
		script_php_read_said(script, said, path, path);
	script->php.is_sure &= said->is_sure;
	return said->proof;
}

/* The name of the function's class; 0 = it is in none. */
static __always_inline __u64 script_php_class(struct script *script, __u64 class)
{
	struct script_said *said = &script->php.class;
	__u64 name = 0;

	if (!class)
		return 0;
	if (said->owner != class) {
		if (class & 7 || walk_read(&name, sizeof(name), class + SCRIPT_PHP_CLASS_NAME_AT)) {
			script->php.is_sure = false;
			return class;
		}
		script_php_read_said(script, said, class, name);
	}
	script->php.is_sure &= said->is_sure;
	return said->proof;
}

enum script_php_seen {
	PHP_SEEN_READ = 1,
	PHP_SEEN_INTERNAL = 2,
	PHP_SEEN_NAMELESS = 4,
	PHP_SEEN_FLAGS = 7, /* the rest is the address of its instructions; of a file's name */
};

static __always_inline __u64 script_php_word(const struct script_php *php, __u32 at)
{
	return php->function[row_masked(at, SCRIPT_PHP_FUNCTION_WORDS - 1)];
}

/*
 * The function at hand is in PHP, of a number of instructions from `start` on. If it stays what and
 * where it is until the request ends, later samples take it as it is.
 */
static __always_inline void script_php_keep(struct script *script, __u64 function, __u64 proof,
					    __u64 start, __u32 instructions)
{
	__u64 kind = script->php.function[PHP_FUNCTION_KIND];
	struct script_lasting known = {
		.key = function ^ script->lasting.scope,
		.proof = proof,
		.start = start,
		.bytes = (__u64)PHP_INSTRUCTION_BYTES * instructions,
	};

	if (script->lasting.scope && script->php.is_sure && (__u8)kind == PHP_KIND_USER &&
	    !(kind & PHP_FUNCTION_PASSES))
		script_lasting_put(&script->lasting, &known);
}

/* Notes what the function in PHP at hand is. */
static __always_inline void script_php_note_user(struct script *script, __u64 function,
						 struct script_seen *seen)
{
	struct script_php *php = &script->php;
	__u32 layout = script->process.php.file, at = layout & 31;
	__u32 code = at - SCRIPT_PHP_DISTANCE - (layout >> 6), instructions;
	__u64 last = script_php_word(php, code - 1), path = script_php_word(php, at), file, class;

	php->is_sure = true;
	file = script_php_file(script, path);
	if (!php->function[PHP_FUNCTION_NAME]) {
		seen->proof = script_php_file_proof(file);
		seen->more = path & ~(__u64)PHP_SEEN_FLAGS;
		return;
	}
	class = script_php_class(script, php->function[PHP_FUNCTION_CLASS]);
	script_php_read_text(&php->text, php->function[PHP_FUNCTION_NAME]);
	php->is_sure &= php->text.is_sure;
	instructions = (__u32)(layout & SCRIPT_PHP_LAST_IS_LOW ? last : last >> 32);
	seen->proof = script_php_proof(php->text.proof, class, file, script_php_word(php, at + 1),
				       instructions);
	seen->more = script_php_word(php, code) & ~(__u64)PHP_SEEN_FLAGS;
	script_php_keep(script, function, seen->proof, seen->more, instructions);
}

/*
 * Reads what a function is: one in C by where its names are, as they stay there. False when it is
 * not there.
 */
static __always_inline bool script_php_read_function(struct script *script, __u64 function,
						     struct script_seen *seen)
{
	__u64 *words = script->php.function;
	__u32 bytes = 8 * ((script->process.php.file & 31u) + 2);

	if (function & 7)
		return false;
	if (walk_read(words, bytes & (8 * SCRIPT_PHP_FUNCTION_WORDS - 8), function) &&
	    (walk_read(words, SCRIPT_PHP_HEAD_BYTES, function) ||
	     (__u8)words[PHP_FUNCTION_KIND] != PHP_KIND_INTERNAL))
		return false;
	if ((__u8)words[PHP_FUNCTION_KIND] != PHP_KIND_INTERNAL) {
		script_php_note_user(script, function, seen);
		return true;
	}
	seen->proof =
		script_php_proof(words[PHP_FUNCTION_NAME], words[PHP_FUNCTION_CLASS], 0, 0, 0);
	seen->more = PHP_SEEN_INTERNAL;
	return true;
}

/* What is known of a function; more is 0 when it is not there. */
static __always_inline const struct script_seen *script_php_function(struct script *script,
								     __u64 function)
{
	struct script_seen *seen;
	__u64 more = PHP_SEEN_READ;

	if (script_is_seen(script, function, SEEN_CODE, &seen) ||
	    !script_php_read_function(script, function, seen))
		return seen;
	if (!script->php.function[PHP_FUNCTION_NAME])
		more |= PHP_SEEN_NAMELESS;
	script_keep(script, seen, seen->proof, seen->more | more, 0);
	return seen;
}

/* The line of an instruction; 0 = not known. */
static __always_inline __u32 script_php_line(__u64 instruction)
{
	__u32 line;

	return walk_read(&line, sizeof(line), instruction + SCRIPT_PHP_LINE_AT) ? 0 : line;
}

static __always_inline void script_php_put_code(struct script *script, struct sample *sample,
						__u64 object, __u64 proof, __u32 position)
{
	script_put(script, sample, object | proof << SCRIPT_PLACE_SHIFT,
		   (proof >> 32) << 32 | position);
}

/*
 * A function that earlier samples have read and that has stayed. False when there is none; a
 * closure's goes with it.
 */
static __always_inline bool script_php_put_lasting(struct script *script, struct sample *sample,
						   __u64 function, __u64 instruction, __u64 flags)
{
	const struct script_lasting *known = script_lasting_at(&script->lasting, function);
	__u64 into = instruction - known->start;

	if (!script->lasting.scope || known->key != (function ^ script->lasting.scope) ||
	    flags & PHP_FLAG_CLOSURE || into >= known->bytes)
		return false;
	script_php_put_code(script, sample,
			    SCRIPT_ADDRESS(function) | (flags & PHP_FLAG_TOP ? SCRIPT_ENDS_RUN : 0),
			    known->proof, (__u32)into);
	return true;
}

/*
 * A function, or what C has called, at an instruction, with the flags of its frame. False when it
 * is not there.
 */
static __always_inline bool script_php_put(struct script *script, struct sample *sample,
					   __u64 function, __u64 instruction, __u64 flags)
{
	const struct script_seen *seen;
	__u64 object = SCRIPT_ADDRESS(function), at;
	__u32 position = 0;
	bool is_internal;

	if (script_php_put_lasting(script, sample, function, instruction, flags))
		return true;
	seen = script_php_function(script, function);
	is_internal = seen->more & PHP_SEEN_INTERNAL;
	at = seen->more & ~(__u64)PHP_SEEN_FLAGS;
	if (!seen->more)
		return false;
	/* The one function in C without a name is where a fiber begins. */
	if (is_internal && seen->more & PHP_SEEN_NAMELESS) {
		script_put(script, sample, SCRIPT_IS_MARK | SCRIPT_ENDS_RUN, SCRIPT_OTHER_STACK);
		return true;
	}
	if (!is_internal && seen->more & PHP_SEEN_NAMELESS) {
		object = SCRIPT_ADDRESS(at);
		position = script_php_line(instruction);
	} else if (!is_internal) {
		position = (__u32)(instruction - at);
	}
	if (!is_internal && flags & PHP_FLAG_TOP)
		object |= SCRIPT_ENDS_RUN;
	script_php_put_code(script, sample, object, seen->proof, position);
	return true;
}

/* Notes the frame of the generator at hand, in the place that is its. */
static __always_inline void script_php_put_generator(struct script *script, struct sample *sample)
{
	__u32 frame_at = 8 * (script->process.php.generator & 0xf);
	__u64 frame = 0;

	if (walk_read(&frame, sizeof(frame), script->php.generator + frame_at) || frame & 7 ||
	    walk_read(script->words, SCRIPT_PHP_FRAME_BYTES, frame) ||
	    script->words[PHP_FRAME_GENERATOR] != script->php.generator ||
	    !script->words[PHP_FRAME_FUNCTION] || /* no loop runs it: */
	    !script_php_put(script, sample, script->words[PHP_FRAME_FUNCTION],
			    script->words[PHP_FRAME_POSITION],
			    script->words[PHP_FRAME_FLAGS] & ~(__u64)PHP_FLAG_TOP))
		script_put(script, sample, SCRIPT_IS_CUT, SCRIPT_UNSURE);
}

/* One step inwards, from the outermost on. */
static __always_inline void script_php_generator(struct script *script, struct sample *sample)
{
	struct script_php *php = &script->php;
	__u32 at = script->at;

	php->left--;
	script->at = at + 2 * php->left;
	script_php_put_generator(script, sample);
	script->at = php->left ? at : at + 2 * php->count;
	if (walk_read(&php->generator, sizeof(php->generator), php->generator + php->delegate_at))
		php->generator = 0;
}

/* The frame at hand is that of no function, at `placeholder`. False when there is no room. */
static __always_inline bool script_php_delegates(struct script *script, struct sample *sample,
						 const __u64 *frame, __u64 placeholder)
{
	struct script_php *php = &script->php;
	__u32 back = 8 * (script->process.php.generator >> 4);
	__u64 generator = frame[PHP_FRAME_OBJECT];
	__u64 delegate_at = placeholder - generator - back, inner = 0;
	__u32 count = 0;

	if ((__u8)frame[PHP_FRAME_FLAGS] != PHP_VALUE_OBJECT || !back ||
	    delegate_at > SCRIPT_PHP_GENERATOR_BYTES)
		return true;
	php->generator = generator;
	WALK_KEEP_LOOP
	for (int i = 0; i <= SCRIPT_PHP_GENERATORS_MAX; i++) {
		if (walk_read(&inner, sizeof(inner), generator + delegate_at) || !inner)
			break;
		generator = inner;
		count++;
	}
	if (count > SCRIPT_PHP_GENERATORS_MAX || count > script->room)
		return script_cut(script, sample, SCRIPT_TOO_DEEP);
	script->room -= count;
	php->delegate_at = (__u32)delegate_at;
	php->left = php->count = count;
	return true;
}

/*
 * Notes the frame at hand and goes to the one outside of it. False when there is none. A position
 * that is known better than by the innermost frame is in script->limit.
 */
static __always_inline bool script_php_frame(struct script *script, struct sample *sample)
{
	__u64 at = script->frame, position;
	const __u64 *frame;

	if (script->php.left) {
		script_php_generator(script, sample);
		return true;
	}
	if (!at)
		return false;
	if (!script->room)
		return script_cut(script, sample, SCRIPT_TOO_DEEP);
	script->room--;
	if (!script_window_read(&script->frames, at, SCRIPT_PHP_FRAME_BYTES,
				SCRIPT_OUTWARDS_IS_DOWN))
		return script_cut(script, sample, SCRIPT_UNREADABLE);
	frame = script_window_at(&script->frames, at);
	script->frame = frame[PHP_FRAME_PREVIOUS];
	position = script->limit ? script->limit : frame[PHP_FRAME_POSITION];
	script->limit = 0;
	if (!frame[PHP_FRAME_FUNCTION])
		return script_php_delegates(script, sample, frame, at);
	return script_php_put(script, sample, frame[PHP_FRAME_FUNCTION], position,
			      frame[PHP_FRAME_FLAGS]) ||
	       script_cut(script, sample, SCRIPT_UNREADABLE);
}

#endif

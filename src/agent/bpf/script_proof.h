/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only OR BSD-2-Clause */
/*
 * script_proof - tells a code object of an interpreter from another one that came to its place
 * before its name was read. The BPF program computes it of the object that a frame runs, the agent
 * of the object that it reads.
 */
#ifndef FIRN_AGENT_BPF_SCRIPT_PROOF_H
#define FIRN_AGENT_BPF_SCRIPT_PROOF_H

#include <stdbool.h>

#include <linux/types.h>

#define SCRIPT_PROOF_WORDS 4u /* pointers of the object to its names, file and lines */
#define SCRIPT_PROOF_MIX 0x9e3779b97f4a7c15ull

static inline __u32 script_proof(const __u64 *words)
{
	__u64 hash = 0;

	for (__u32 i = 0; i < SCRIPT_PROOF_WORDS; i++)
		hash = (hash ^ words[i]) * SCRIPT_PROOF_MIX;
	return hash >> 32;
}

#define SCRIPT_V8_PROOF_WORDS 3u /* of a function: script; lengths and flags; flags and number */

/*
 * Without the flags, which change. With compressed pointers the script takes half a word, and all
 * behind it is half a word earlier.
 */
static inline __u32 script_v8_proof(const __u64 *words, bool is_compressed)
{
	const __u64 lasting[SCRIPT_PROOF_WORDS] = {
		words[0], words[1] & (is_compressed ? 0xffffull : 0xffffffffffffull),
		is_compressed ? (__u32)words[2] : words[2] >> 32, 0
	};

	return script_proof(lasting);
}

/* For a method entry of Ruby: its class, definition and name; for instructions: only their body. */
static inline __u32 script_ruby_proof(const __u64 *words, bool is_method)
{
	const __u64 lasting[SCRIPT_PROOF_WORDS] = { words[1], is_method ? words[0] : 0,
						    is_method ? words[2] : 0,
						    is_method ? words[3] : 0 };

	return script_proof(lasting);
}

/* 48 bits, of which the low 16 may be left out. */
static inline __u64 script_long_proof(const __u64 *words)
{
	__u64 hash = 0;

	for (__u32 i = 0; i < SCRIPT_PROOF_WORDS; i++)
		hash = (hash ^ words[i]) * SCRIPT_PROOF_MIX;
	return hash >> 32 << 32 | (hash >> 16 & 0xffff);
}

#define SCRIPT_LOST 64u /* a power of two */

/* The index of the count, by proof, of copies that were gone before they were read. */
static inline __u32 script_lost_place(__u64 proof)
{
	return (__u32)(proof >> 32) & (SCRIPT_LOST - 1);
}

#define SCRIPT_TEXT_HEAD_WORDS 3u
#define SCRIPT_TEXT_WORDS 16u /* of its bytes, at most */
#define SCRIPT_TEXT_HASH_WORD 1
#define SCRIPT_TEXT_LENGTH_WORD 2

/* How many bytes of a text of PHP are looked at, its head included. */
static inline __u32 script_text_bytes(const __u64 *head)
{
	__u64 len = head[SCRIPT_TEXT_LENGTH_WORD];
	__u32 most = 8 * SCRIPT_TEXT_WORDS;
	__u32 bytes = len < most ? (__u32)len : most;

	return 8 * SCRIPT_TEXT_HEAD_WORDS + ((bytes + 7) & ~7u);
}

/*
 * What a text of PHP says: its head, then its bytes. words: SCRIPT_TEXT_HEAD_WORDS and
 * SCRIPT_TEXT_WORDS of them, whatever the length of the text. A longer one by its first bytes and
 * the hash that PHP keeps, or, where it keeps none, by its address.
 */
static inline __u64 script_text_proof(const __u64 *words, __u64 address)
{
	__u64 len = words[SCRIPT_TEXT_LENGTH_WORD], hash = len * SCRIPT_PROOF_MIX;

	for (__u32 i = 0; i < SCRIPT_TEXT_WORDS; i++) {
		__u64 word = words[SCRIPT_TEXT_HEAD_WORDS + i];

		if (8 * i >= len)
			break;
		if (8 * i + 8 > len)
			word &= (1ull << 8 * (len & 7)) - 1;
		hash = (hash ^ word) * SCRIPT_PROOF_MIX;
		hash ^= hash >> 32;
	}
	if (len <= 8 * SCRIPT_TEXT_WORDS)
		return hash;
	return hash ^ (words[SCRIPT_TEXT_HASH_WORD] ? words[SCRIPT_TEXT_HASH_WORD] : address);
}

/* In a proof of PHP: the code of a file or of evaluated text, by its file. */
#define SCRIPT_PHP_IS_FILE 0x8000u

/*
 * Of a function of PHP, by what it says and not by where that is, as another request may have it
 * elsewhere: name, class, file, lines, how many instructions.
 */
static inline __u64 script_php_proof(__u64 name, __u64 class_name, __u64 file, __u64 lines,
				     __u32 instructions)
{
	const __u64 words[SCRIPT_PROOF_WORDS] = { name, class_name ^ instructions, file, lines };

	return script_long_proof(words) & ~(__u64)SCRIPT_PHP_IS_FILE;
}

static inline __u64 script_php_file_proof(__u64 file)
{
	return script_php_proof(0, 0, file, 0, 0) | SCRIPT_PHP_IS_FILE;
}

/* What a frame of Perl runs. */
enum script_perl_code {
	PERL_CODE_SUB,
	PERL_CODE_PROGRAM,
	PERL_CODE_FILE,	 /* that is loaded */
	PERL_CODE_TEXT,	 /* that is evaluated */
	PERL_CODE_BEGIN, /* a block that runs while the file is read */
};

#define SCRIPT_PERL_KIND_SHIFT 13u

/*
 * Of a sub of Perl: package, start, code, name; of other code the name of its file; 48 bits. The
 * highest of the low 16 are its kind, which script_perl_kind tells from those.
 */
static inline __u64 script_perl_proof(const __u64 *words, enum script_perl_code kind)
{
	__u64 proof = script_long_proof(words);

	return (proof & ~(7ull << SCRIPT_PERL_KIND_SHIFT)) | (__u64)kind << SCRIPT_PERL_KIND_SHIFT;
}

static inline enum script_perl_code script_perl_kind(__u64 low)
{
	return (enum script_perl_code)(low >> SCRIPT_PERL_KIND_SHIFT & 7);
}

/* For a code blob of HotSpot: its first words, and a word with its compile id. */
static inline __u32 jvm_proof(const __u64 *head, __u64 ids)
{
	__u64 hash = ids * SCRIPT_PROOF_MIX;

	for (__u32 i = 0; i < 8; i++)
		hash = (hash ^ head[i]) * SCRIPT_PROOF_MIX;
	return hash >> 32;
}

/* For a method: the address of its ConstMethod, and the sizes and names in that. */
static inline __u32 jvm_method_proof(__u64 const_method, __u64 ids)
{
	return ((const_method ^ ids * SCRIPT_PROOF_MIX) * SCRIPT_PROOF_MIX) >> 32;
}

#endif

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

/* Without the flags, which change. */
static inline __u32 script_v8_proof(const __u64 *words)
{
	const __u64 lasting[SCRIPT_PROOF_WORDS] = { words[0], words[1] & 0xffffffffffffull,
						    words[2] >> 32, 0 };

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

/* For a function of PHP: name, class, file, lines; 48 bits, of which the low 16 may be left out. */
static inline __u64 script_php_proof(const __u64 *words)
{
	__u64 hash = 0;

	for (__u32 i = 0; i < SCRIPT_PROOF_WORDS; i++)
		hash = (hash ^ words[i]) * SCRIPT_PROOF_MIX;
	return hash >> 32 << 32 | (hash >> 16 & 0xffff);
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
	__u64 proof = script_php_proof(words);

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

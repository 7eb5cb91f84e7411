/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mono_layout - offsets in Mono's structures, in bytes, as mono_file finds them in the code of
 * exported functions. Plain data.
 */
#ifndef FIRN_AGENT_RUNTIME_DOTNET_MONO_LAYOUT_H
#define FIRN_AGENT_RUNTIME_DOTNET_MONO_LAYOUT_H

#include <stdint.h>

struct mono_symbols {
	/* Virtual addresses in a binary; 0 = it is no Mono. */
	uint64_t domains, domains_count; /* variables: the list, and its length; 0 = not known */
	uint64_t root_domain;		 /* the variable */
	uint64_t data, data_bytes;	 /* where it and the other variables are */
	uint8_t info_method;		 /* of a MonoJitInfo */
	uint8_t info_start;		 /* ... of its code */
	uint8_t info_size;  /* ... and before that the number of its unwind information */
	uint8_t info_bits;  /* ... a word: how many clauses, and what else there is */
	uint8_t is_loading; /* ... which bit of it says that the method is not known yet */
	uint8_t method_class, method_name;
	uint8_t class_outer, class_name, class_namespace;
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perl_layout - offsets in Perl, as far as versions differ, and native functions that matter for
 * pairing with the frames of subs. Plain data, made by perl_file, used by perl_code and
 * agent/describe.
 */
#ifndef FIRN_AGENT_RUNTIME_PERL_PERL_LAYOUT_H
#define FIRN_AGENT_RUNTIME_PERL_PERL_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

struct perl_function {
	uint64_t offset, bytes; /* in the file; 0 bytes = not known */
};

struct perl_layout {
	bool is_threaded;	  /* a statement names its file; otherwise the glob of it */
	bool has_names_in_bodies; /* of packages; otherwise behind their buckets */
	uint64_t statement;	  /* virtual address of the function that runs one */
	/* The loop that it calls goes on with the run of the loop that called it. */
	struct perl_function catches;
	struct perl_function program; /* runs the program, in the loop that it calls */
};

#endif

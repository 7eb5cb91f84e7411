/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfo_client - sends one file to a server by Parca's DebuginfoService: asks, and sends only
 * what the server wants and does not have from an upload that was cut off. Blocks; bounded memory;
 * for the agent and the command line.
 */
#ifndef FIRN_AGENT_EXPORT_DEBUGINFO_CLIENT_H
#define FIRN_AGENT_EXPORT_DEBUGINFO_CLIENT_H

#include "codec/elf/elf_extract.h"
#include "codec/elf/elf_inspect.h"
#include "codec/elf/elf.h"
#include "net/client/client.h"

struct debuginfo_client_file {
	int fd;				   /* a regular file; the caller's */
	const struct elf_extract *extract; /* of it, sent in its place; NULL: all of it */
	const char *path;		   /* for messages; its last part is told to the server */
	/* NULL: an ELF file that tells its build id. Else what it belongs to, hex: it is an archive
	 * of sources, or a package of split DWARF.
	 */
	const char *belongs_to;
	bool is_package;
	bool is_agent;	 /* nobody asked for this upload; lists tell */
	bool is_forced;	 /* replace a file that is as good */
	bool hash_first; /* so that the server may take it in spite of a poor one with another hash
			  */
	bool is_debug_file; /* worth its bytes although the server has the stripped program */
	/* The names that it can give, for servers that know (firn's); _NOTHING: is not told. */
	enum elf_quality quality;
	/* Called after each piece; false gives up (ERR_CANCELLED). May be NULL. */
	bool (*progress)(void *context, uint64_t sent, uint64_t total);
	void *progress_context;
};

/*
 * Sends the file unless the server has it (*ret_present). ERR_BUSY while somebody else sends it,
 * ERR_UNAVAILABLE, ERR_DEADLINE, ERR_IO when it makes sense to try again, ERR_INVALID when not.
 */
int debuginfo_client_send(struct net_client *client, const struct debuginfo_client_file *file,
			  char ret_build_id[ELF_BUILD_ID_TEXT_BYTES], bool *ret_present,
			  struct err *err);

#endif

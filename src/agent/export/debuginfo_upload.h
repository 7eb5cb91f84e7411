/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfo_upload - sends the binaries that an agent has seen to its server, in the background, so
 * that frames get names: once per build id for all agents of a server, which is asked first. Of
 * several files with one build id each is offered, with what names it can give: the best wins.
 *
 * With the program goes its separate debug file, where the program's container or this host has it
 * installed, and the file that dwz moved parts of it to. Of all of them only what symbols need
 * (codec/elf/elf_extract.h) is sent. One thread of low priority sends one file at a time at a
 * bounded rate; the queue is bounded (a full one refuses); files over a size are not sent. A file
 * that another agent is sending, that could not be sent, or whose file system hangs, is tried again
 * later.
 */
#ifndef FIRN_AGENT_EXPORT_DEBUGINFO_UPLOAD_H
#define FIRN_AGENT_EXPORT_DEBUGINFO_UPLOAD_H

#include "agent/agent.h"

struct debuginfo_upload;
struct root_files;

struct debuginfo_upload_options {
	const char *address;		 /* HOST:PORT */
	const struct net_access *access; /* net/client/client.h; may be NULL; borrowed */
	struct root_files *files; /* open debug files, and are stopped at the end; borrowed */
	uint64_t file_bytes_max;  /* of what is extracted of one; 0 = default (1 GiB) */
	uint64_t bytes_per_s;	  /* 0 = default (8 MiB) */
	int64_t retry_ns;	  /* 0 = default (5 min) */
};

int debuginfo_upload_new(const struct debuginfo_upload_options *options,
			 struct debuginfo_upload **ret, struct err *err);

/*
 * An agent's binary_seen; the descriptor stays the caller's. False when the queue is full. Any
 * thread; never waits.
 */
bool debuginfo_upload_offer(void *upload, const struct agent_binary *binary);

/* Gives up what is being sent. Accepts NULL. */
void debuginfo_upload_free(struct debuginfo_upload *upload);

#endif

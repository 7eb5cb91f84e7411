/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procmaps - one line of /proc/PID/maps (proc_pid_maps(5)):
 *
 *     55d0c9a3e000-55d0c9a42000 r-xp 00002000 08:01 1835022    /usr/bin/cat (deleted)
 *
 * The process chooses its paths, so they may hold anything but a newline (which the kernel writes
 * as \012). A slice of the result points into the line.
 */
#ifndef FIRN_CODEC_PROCESS_PROCMAPS_H
#define FIRN_CODEC_PROCESS_PROCMAPS_H

#include "base/err.h"
#include "base/strbuf.h"

struct procmaps_line {
	uint64_t start, end; /* start < end */
	uint64_t offset;     /* into the file */
	uint64_t inode;	     /* 0 = no file */
	uint32_t dev_major, dev_minor;
	bool readable, writable, executable, shared;
	bool deleted;	   /* " (deleted)" was taken off the path */
	struct slice path; /* as the kernel wrote it; empty, "[vdso]", "[anon:name]", "/path" */
};

/* `line` comes without its newline. */
int procmaps_parse_line(struct slice line, struct procmaps_line *ret, struct err *err);

/* Appends the path with \012 turned back into a newline. */
void procmaps_add_path(struct strbuf *out, struct slice path);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar - reads an archive of files as its bytes arrive: ustar and pax (POSIX.1-2017, pax), and the
 * long names and large sizes of GNU tar.
 *
 * Nothing is written anywhere: names are only text, whatever they say. Links, devices and folders
 * are told as entries that are no files. Bounds: TAR_NAME_BYTES_MAX, TAR_ENTRIES_MAX; how many
 * bytes come is for the caller to bound.
 */
#ifndef FIRN_CODEC_ARCHIVE_TAR_H
#define FIRN_CODEC_ARCHIVE_TAR_H

#include "base/err.h"
#include "base/strbuf.h"

#define TAR_BLOCK_BYTES 512
#define TAR_NAME_BYTES_MAX 4096
#define TAR_ENTRIES_MAX 4000000u

struct tar_entry {
	struct slice name; /* as it stands in the archive; lives during the call */
	uint64_t bytes;	   /* of the content */
	bool is_file;
};

/* Each ends the reading by what it returns when that is not 0: negative is an error. */
struct tar_sink {
	/* *ret_wanted, preset false: hand the content over. */
	int (*entry)(void *context, const struct tar_entry *entry, bool *ret_wanted,
		     struct err *err);
	/* A piece of wanted content; `left` bytes of it come after. Once with nothing for none. */
	int (*content)(void *context, struct slice bytes, uint64_t left, struct err *err);
	void *context;
};

enum tar_phase {
	TAR_HEADER,
	TAR_CONTENT,  /* of an entry */
	TAR_EXTENDED, /* the content of a header that describes the next entry */
	TAR_PADDING,
	TAR_ENDED,
};

struct tar_reader {
	const struct tar_sink *sink;
	enum tar_phase phase;
	char block[TAR_BLOCK_BYTES]; /* a header */
	size_t block_len;
	uint64_t left;	  /* of what the phase reads */
	uint32_t padding; /* behind it */
	char type;	  /* of the header read last */
	bool is_wanted;
	struct strbuf extended;	 /* TAR_EXTENDED */
	struct strbuf next_name; /* of the next entry, from an extended header; empty = none */
	bool has_next_size;
	uint64_t next_size;
	uint32_t entries;
	uint64_t offset; /* of what was read, for messages */
};

void tar_begin(struct tar_reader *reader, const struct tar_sink *sink);

/* Any pieces. 0, what the sink returned, or ERR_INVALID, ERR_LIMIT. Nothing more after that. */
int tar_add(struct tar_reader *reader, struct slice bytes, struct err *err);

/* All came. ERR_INVALID when it is not the end of an archive. */
int tar_end(struct tar_reader *reader, struct err *err);
void tar_free(struct tar_reader *reader);

/*
 * Appends the header of a file, with a pax header before it where ustar cannot hold the name;
 * its content has to follow, padded with zeros to a whole block. An archive ends with two blocks of
 * zeros.
 */
void tar_put_header(struct strbuf *out, struct slice name, uint64_t bytes);

#endif

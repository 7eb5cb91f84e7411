/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jfr_chunk - one chunk of a flight recording: the layouts of its classes, its constants, its
 * events, and values read by these layouts. Used by jfr.c alone.
 */
#ifndef FIRN_CODEC_PROFILE_JFR_CHUNK_H
#define FIRN_CODEC_PROFILE_JFR_CHUNK_H

#include "base/arena.h"
#include "base/err.h"
#include "base/idmap.h"
#include "base/slice.h"

struct jfr_field {
	struct slice name;
	int64_t class_id;
	uint32_t class; /* index, or JFR_NO_CLASS */
	bool is_constant, is_array;
};
#define JFR_NO_CLASS UINT32_MAX

/* How a value of a class without fields is written. */
enum jfr_primitive {
	JFR_STRUCT,
	JFR_BYTE,
	JFR_NUMBER,
	JFR_FLOAT,
	JFR_DOUBLE,
	JFR_STRING,
};

struct jfr_class {
	int64_t id;
	struct slice name;
	enum jfr_primitive primitive;
	uint32_t field_first, field_count;
};

struct jfr_constant {
	uint32_t class;
	int64_t key;
	size_t at;	   /* in the chunk */
	struct slice text; /* for whoever made one of it; data NULL: nobody did */
	uint32_t *samples; /* likewise, of a stack: in the chunk's arena */
};

struct jfr_chunk {
	struct slice bytes; /* of this chunk */
	size_t number;	    /* in the file, from 0 */
	int64_t start_ns, duration_ns, start_ticks, ticks_per_s;
	struct slice *strings;
	size_t strings_count, strings_capacity;
	struct jfr_class *classes;
	size_t classes_count, classes_capacity;
	struct jfr_field *fields;
	size_t fields_count, fields_capacity;
	struct jfr_constant *constants;
	size_t constants_count, constants_capacity;
	struct idmap by_key; /* constants */
	struct idmap by_id;  /* classes */
	uint32_t string_class;
	struct arena arena; /* of texts that had to be converted */
	size_t elements_max;
	struct budget *budget; /* pays; NULL: nobody */
	size_t paid_bytes;
	size_t text_left; /* bytes that may be converted */
	size_t work_left; /* values that may be read: layouts can make few bytes mean many */
	struct err *err;
};

/* A place in a chunk. `failed` stays once set, and the error is in the chunk's err. */
struct jfr_reader {
	struct jfr_chunk *chunk;
	size_t at, end;
	bool failed;
};

/* A value; of a structure, where it begins. */
struct jfr_value {
	int64_t number;	   /* numbers; the key of a constant */
	double real;	   /* of float and double */
	struct slice text; /* strings */
	size_t at;
};

/* Reads header, layouts and constants. The chunk is to be freed in any case. */
MUST_USE int jfr_chunk_open(struct jfr_chunk *chunk, struct slice bytes, size_t number,
			    size_t elements_max, struct budget *budget, struct err *err);
void jfr_chunk_free(struct jfr_chunk *chunk);

/* The length in a header at the front of `bytes`; 0: not finished. ERR_INVALID: no header. */
MUST_USE int jfr_chunk_length(struct slice bytes, size_t number, uint64_t *ret, struct err *err);

uint32_t jfr_chunk_class(const struct jfr_chunk *chunk, const char *name); /* or JFR_NO_CLASS */

/*
 * The next event from *at on: its class, which may be JFR_NO_CLASS, and a reader behind its head.
 * False at the end, or with the reader failed.
 */
bool jfr_chunk_event(struct jfr_chunk *chunk, size_t *at, uint32_t *ret_class,
		     struct jfr_reader *ret);

/* Reads the value of a field (not of an array), or passes over it. */
struct jfr_value jfr_read(struct jfr_reader *reader, const struct jfr_field *field);

/* The constant that a field's value is the key of; NULL: it is not there. */
struct jfr_constant *jfr_constant_of(struct jfr_chunk *chunk, const struct jfr_field *field,
				     int64_t key);
/* A field of a constant, by name; zero and empty when it has none such. *ret_field may be NULL. */
struct jfr_value jfr_constant_field(struct jfr_chunk *chunk, const struct jfr_constant *constant,
				    const char *name, const struct jfr_field **ret_field);

/* The budget pays for more, until the chunk is freed; or false, and the reader has failed. */
bool jfr_pay(struct jfr_reader *reader, size_t bytes);

/* The number of elements of an array, whose values follow; 0 with the reader failed. */
uint64_t jfr_read_count(struct jfr_reader *reader);

#endif

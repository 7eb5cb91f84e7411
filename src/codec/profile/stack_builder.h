/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_builder - a pprof profile from stacks of text formats, frame by frame: what folded.h,
 * perf_script.h, legacy_pprof.h and speedscope.h have in common.
 *
 * Equal frames become one location. Texts are copied; all belongs to the builder, which has to
 * outlive the profile's last use. Over the limit, or when the budget does not pay, `full` is set
 * and nothing more is added: few bytes can mean many frames, so each is paid before it is kept.
 */
#ifndef FIRN_CODEC_PROFILE_STACK_BUILDER_H
#define FIRN_CODEC_PROFILE_STACK_BUILDER_H

#include "base/idmap.h"
#include "codec/profile/pprof.h"

#define STACK_BUILDER_DEPTH_MAX 8192

struct stack_builder_frame {
	struct slice name; /* empty: known by its address alone */
	struct slice file; /* source */
	int64_t line;
	struct slice mapping; /* binary, or empty */
	uint64_t address;     /* in the binary's file */
};

struct stack_builder {
	struct pprof profile;
	struct pprof_builder *strings;
	struct idmap functions, locations, mappings;
	size_t elements_max;
	struct budget *budget; /* pays for all of it; NULL: nobody */
	size_t paid_bytes;     /* besides the profile's columns and texts */
	bool full, is_broke;
	uint64_t *stack; /* location ids, in the order of the pushes */
	size_t stack_count, stack_capacity;
};

void stack_builder_init(struct stack_builder *builder, size_t elements_max, struct budget *budget);
void stack_builder_free(struct stack_builder *builder);

void stack_builder_type(struct stack_builder *builder, const char *type, const char *unit);

/* Id of the frame's location, for stack_builder_push_id. */
uint64_t stack_builder_location(struct stack_builder *builder,
				const struct stack_builder_frame *frame);
/* Adds to the stack being built; beyond STACK_BUILDER_DEPTH_MAX frames are left out. */
void stack_builder_push_id(struct stack_builder *builder, uint64_t location);
void stack_builder_push(struct stack_builder *builder, const struct stack_builder_frame *frame);

/* The stack ends: a sample with one value per type. A label follows with stack_builder_label. */
void stack_builder_sample(struct stack_builder *builder, bool root_first, const int64_t *values);
void stack_builder_label(struct stack_builder *builder, const char *key, struct slice text);
void stack_builder_label_number(struct stack_builder *builder, const char *key, int64_t number);

/*
 * ERR_LIMIT when it was full (or as base/budget.h says), ERR_INVALID when there is no sample;
 * `what` names the format.
 */
int stack_builder_check(const struct stack_builder *builder, const char *what, struct err *err);

/* Appends the profile's message, which is paid for until the builder is freed. */
MUST_USE int stack_builder_encode(struct stack_builder *builder, struct strbuf *out,
				  struct err *err);

#endif

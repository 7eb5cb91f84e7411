/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naive_filter - filters on stacks and frames once more, with strings and loops, and as the text
 * that the real ones are parsed from. For model_test.
 */
#ifndef TESTS_UNIT_QUERY_NAIVE_FILTER_H
#define TESTS_UNIT_QUERY_NAIVE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAIVE_FILTERS_MAX 3
#define NAIVE_CONDITIONS_MAX 2

struct naive_frame {
	const char *name, *binary, *file, *kind;
	uint64_t address;
	uint32_t line;
};

struct naive_condition {
	int field; /* 0 function, 1 binary, 2 file, 3 kind, 4 address, 5 line */
	int op;	   /* 0 is, 1 contains, 2 starts with, 3 regular expression */
	bool negated;
	const char *value;
};

struct naive_filters {
	struct naive_filter {
		int action; /* 0 show-stack, 1 hide-stack, 2 show-from, 3 show-frame, 4 hide-frame
			     */
		struct naive_condition conditions[NAIVE_CONDITIONS_MAX];
		int count;
	} list[NAIVE_FILTERS_MAX];
	int count;
	char text[512];
};

/* `draw(n)` gives a number below n. */
void naive_filters_draw(struct naive_filters *filters, uint32_t (*draw)(uint32_t below));

/* Whether a stack is shown; frames come root first. */
bool naive_filters_show(const struct naive_filters *filters, const struct naive_frame *frames,
			uint32_t count);

/* Takes out the frames that are not shown. */
void naive_filters_frames(const struct naive_filters *filters, struct naive_frame *frames,
			  uint32_t *count);

#endif

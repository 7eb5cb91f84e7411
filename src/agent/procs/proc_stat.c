/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/procs/proc_stat.h"

#define STATE_FIELD 3 /* the first after the name */
#define PARENT_FIELD 4
#define START_FIELD 22

bool proc_stat_parse(struct slice text, struct proc_stat *ret)
{
	struct proc_stat stat = { 0 };
	size_t open = slice_find_byte(text, '(');
	const char *close = text.len ? memrchr(text.data, ')', text.len) : NULL;
	struct slice field = { 0 }, rest;
	uint64_t parent = 0;

	if (open == SIZE_MAX || !close || close < text.data + open)
		return false;
	stat.name = slice_from(text.data + open + 1, (size_t)(close - text.data) - open - 1);
	rest = slice_tail(text, (size_t)(close - text.data) + 2);
	stat.ended = rest.len && (rest.data[0] == 'Z' || rest.data[0] == 'X');
	for (int number = STATE_FIELD; number <= START_FIELD; number++) {
		field = slice_cut(rest, ' ', &rest);
		if (number == PARENT_FIELD && !slice_parse_u64(field, &parent))
			return false;
	}
	if (parent > INT32_MAX || !slice_parse_u64(field, &stat.start_ticks))
		return false;
	stat.parent_pid = (uint32_t)parent;
	*ret = stat;
	return true;
}

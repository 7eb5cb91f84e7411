/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/cgroup.h"

#define CONTAINER_DIGITS 64
#define LXC_PREFIX SLICE_LITERAL("lxc.payload.")

static bool ends_with(struct slice s, struct slice end)
{
	return s.len > end.len && slice_equal(slice_tail(s, s.len - end.len), end);
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* A run of exactly 64 hex digits, as in "docker-<id>.scope" or "<id>". */
static struct slice find_container_id(struct slice component)
{
	size_t run = 0;

	for (size_t i = 0; i <= component.len; i++) {
		if (i < component.len && is_hex(component.data[i])) {
			run++;
			continue;
		}
		if (run == CONTAINER_DIGITS)
			return slice_from(component.data + i - run, run);
		run = 0;
	}
	return (struct slice){ 0 };
}

static bool is_unit(struct slice component)
{
	return ends_with(component, SLICE_LITERAL(".service")) ||
	       ends_with(component, SLICE_LITERAL(".scope")) ||
	       ends_with(component, SLICE_LITERAL(".socket")) ||
	       ends_with(component, SLICE_LITERAL(".mount"));
}

/* The innermost component of each kind counts. A container's scope is no unit of interest. */
static void parse_path(struct slice path, struct cgroup *ret)
{
	struct slice rest = path;

	*ret = (struct cgroup){ .path = path };
	while (rest.len) {
		struct slice component = slice_cut(rest, '/', &rest);
		struct slice container = find_container_id(component);

		if (!container.len && slice_starts_with(component, LXC_PREFIX))
			container = slice_tail(component, LXC_PREFIX.len);
		if (container.len)
			ret->container = container;
		else if (is_unit(component))
			ret->systemd_unit = component;
	}
}

/* How much a hierarchy's path is worth; the unified one says most. */
static int rank_of(struct slice hierarchy, struct slice controllers)
{
	if (slice_is(hierarchy, "0") && !controllers.len)
		return 4;
	if (slice_is(controllers, "name=systemd"))
		return 3;
	if (slice_is(controllers, "memory"))
		return 2;
	return slice_starts_with(controllers, SLICE_LITERAL("cpu")) ? 1 : 0;
}

void cgroup_parse(struct slice text, struct cgroup *ret)
{
	struct slice best = { 0 };
	int best_rank = 0;

	while (text.len) {
		struct slice controllers, path, line = slice_cut(text, '\n', &text);
		struct slice hierarchy = slice_cut(line, ':', &controllers);
		int rank;

		controllers = slice_cut(controllers, ':', &path);
		rank = rank_of(hierarchy, controllers);
		if (path.len > 1 && path.data[0] == '/' && rank > best_rank) {
			best = path;
			best_rank = rank;
		}
	}
	parse_path(best, ret);
}

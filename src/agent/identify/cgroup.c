/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/identify/cgroup.h"

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

/* What stands before the id in "docker-<id>.scope", and folders of cgroupfs drivers. */
static enum cgroup_runtime runtime_of(struct slice before, struct slice folder)
{
	static const struct {
		const char *text;
		enum cgroup_runtime runtime;
	} prefixes[] = {
		{ "docker-", CGROUP_RUNTIME_DOCKER },
		{ "libpod-", CGROUP_RUNTIME_PODMAN },
		{ "libpod-payload-", CGROUP_RUNTIME_PODMAN },
		{ "cri-containerd-", CGROUP_RUNTIME_CONTAINERD },
		{ "nerdctl-", CGROUP_RUNTIME_CONTAINERD },
		{ "crio-", CGROUP_RUNTIME_CRIO },
	}, folders[] = {
		{ "docker", CGROUP_RUNTIME_DOCKER },
		{ "libpod_parent", CGROUP_RUNTIME_PODMAN },
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (slice_is(before, prefixes[i].text))
			return prefixes[i].runtime;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		if (slice_is(folder, folders[i].text))
			return folders[i].runtime;
	return CGROUP_RUNTIME_UNKNOWN;
}

/* "crio-conmon-<id>.scope" is the monitor of a container, outside of it. */
static bool is_monitor(struct slice before)
{
	return slice_ends_with(before, SLICE_LITERAL("conmon-"));
}

/* "pod<uid>", "kubepods-burstable-pod<uid with _>.slice". */
static bool take_pod(struct slice component, struct cgroup *ret)
{
	static const char *const classes[] = { "burstable", "besteffort" };
	const char *qos = "guaranteed";
	struct slice uid = component;
	bool is_slice = slice_starts_with(component, SLICE_LITERAL("kubepods-"));

	if (is_slice)
		uid = slice_tail(uid, strlen("kubepods-"));
	for (size_t i = 0; is_slice && i < sizeof(classes) / sizeof(*classes); i++) {
		if (!slice_starts_with(uid, slice_of(classes[i])))
			continue;
		qos = classes[i];
		uid = slice_tail(uid, strlen(classes[i]) + 1);
	}
	if (!slice_starts_with(uid, SLICE_LITERAL("pod")))
		return false;
	uid = slice_tail(uid, strlen("pod"));
	if (slice_ends_with(uid, SLICE_LITERAL(".slice")))
		uid.len -= strlen(".slice");
	if (!uid.len || uid.len >= CGROUP_POD_UID_BYTES)
		return false;
	for (size_t i = 0; i < uid.len; i++)
		ret->pod_uid[i] = is_slice && uid.data[i] == '_' ? '-' : uid.data[i];
	ret->pod_uid[uid.len] = '\0';
	ret->pod_qos = qos;
	return true;
}

/* Where a path leads through the folders of Kubernetes. */
struct kubepods {
	bool is_inside;
	const char *qos; /* by a folder of its own */
};

static void look_for_pod(struct slice component, struct kubepods *kubepods, struct cgroup *ret)
{
	if (slice_is(component, "kubepods") ||
	    slice_starts_with(component, SLICE_LITERAL("kubepods-")) ||
	    slice_is(component, "kubepods.slice"))
		kubepods->is_inside = true;
	else if (slice_is(component, "burstable"))
		kubepods->qos = "burstable";
	else if (slice_is(component, "besteffort"))
		kubepods->qos = "besteffort";
	if (!kubepods->is_inside || !take_pod(component, ret))
		return;
	if (kubepods->qos)
		ret->pod_qos = kubepods->qos;
}

static void take_container(struct slice component, struct slice folder, struct slice container,
			   struct cgroup *ret)
{
	struct slice before = slice_from(component.data, (size_t)(container.data - component.data));

	if (is_monitor(before))
		return;
	ret->container = container;
	ret->runtime = runtime_of(before, folder);
}

/*
 * LXC's: "lxc.payload.NAME"; before version 4 a folder in "lxc.payload", or in "lxc" at the top,
 * where Proxmox still has them. Empty when it is none.
 */
static struct slice find_lxc(struct slice path, struct slice component, struct slice folder)
{
	bool is_top = slice_is(folder, "lxc") && folder.data == path.data + 1;

	if (slice_starts_with(component, LXC_PREFIX))
		return slice_tail(component, LXC_PREFIX.len);
	return is_top || slice_is(folder, "lxc.payload") ? component : (struct slice){ 0 };
}

/* The innermost component of each kind counts. A container's scope is no unit of interest. */
static void parse_path(struct slice path, struct cgroup *ret)
{
	struct slice rest = path, folder = { 0 };
	struct kubepods kubepods = { 0 };

	*ret = (struct cgroup){ .path = path };
	while (rest.len) {
		struct slice component = slice_cut(rest, '/', &rest);
		struct slice container = find_container_id(component);
		struct slice lxc = find_lxc(path, component, folder);

		look_for_pod(component, &kubepods, ret);
		if (lxc.len) {
			ret->container = lxc;
			ret->runtime = CGROUP_RUNTIME_LXC;
		} else if (container.len) {
			take_container(component, folder, container, ret);
		} else if (is_unit(component)) {
			ret->systemd_unit = component;
		} else if (ends_with(component, SLICE_LITERAL(".slice"))) {
			ret->systemd_slice = component;
		}
		folder = component;
	}
	if (!ret->pod_uid[0])
		ret->pod_qos = NULL;
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

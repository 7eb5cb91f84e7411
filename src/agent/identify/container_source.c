/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/identify/container_source.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "agent/identify/cri_answer.h"
#include "agent/identify/engine_answer.h"
#include "base/mem.h"
#include "net/client/client.h"
#include "net/client/fetch.h"

#define PATH_BYTES 108 /* of an address (unix(7)) */
#define HOST_ROOT "/proc/1/root"
#define CRI_SERVICE "/runtime.v1.RuntimeService/"
#define GRPC_NOT_FOUND 5
#define GRPC_UNIMPLEMENTED 12

const char *const container_source_defaults[] = {
	"docker:/run/docker.sock",
	"docker:/run/podman/podman.sock",
	"cri:/run/containerd/containerd.sock",
	"cri:/run/crio/crio.sock",
	"cri:/run/k3s/containerd/containerd.sock",
	"cri:/run/k0s/containerd.sock",
	"cri:/var/snap/microk8s/common/run/containerd.sock",
	NULL,
};

struct container_source {
	bool is_engine;
	char path[PATH_BYTES];
	struct net_client *client; /* of the container runtime interface; NULL: not connected yet */
	int64_t deadline_at_ns;	   /* of the current request */
	_Atomic bool cancelled;
};

static bool take_prefix(struct slice *text, const char *prefix)
{
	if (!slice_starts_with(*text, slice_of(prefix)))
		return false;
	*text = slice_tail(*text, strlen(prefix));
	return true;
}

int container_source_new(const char *text, struct container_source **ret, struct err *err)
{
	struct slice path = slice_of(text);
	bool is_engine = take_prefix(&path, "docker:");
	struct container_source *source;

	if (!is_engine && !take_prefix(&path, "cri:"))
		is_engine = strstr(text, "docker") || strstr(text, "podman");
	if (!path.len || path.data[0] != '/')
		return err_set(err, ERR_INVALID, "socket \"%s\": write docker:/PATH or cri:/PATH",
			       text);
	if (path.len + strlen(HOST_ROOT) >= PATH_BYTES)
		return err_set(err, ERR_INVALID, "socket \"%s\": the path is too long", text);
	source = mem_new(struct container_source);
	source->is_engine = is_engine;
	memcpy(source->path, path.data, path.len);
	*ret = source;
	return 0;
}

void container_source_free(struct container_source *source)
{
	if (!source)
		return;
	net_client_free(source->client);
	free(source);
}

const char *container_source_path(const struct container_source *source)
{
	return source->path;
}

bool container_source_knows(const struct container_source *source, enum cgroup_runtime runtime)
{
	switch (runtime) {
	case CGROUP_RUNTIME_UNKNOWN:
		return true;
	case CGROUP_RUNTIME_DOCKER:
	case CGROUP_RUNTIME_PODMAN:
		return source->is_engine;
	case CGROUP_RUNTIME_CONTAINERD:
	case CGROUP_RUNTIME_CRIO:
		return !source->is_engine;
	case CGROUP_RUNTIME_LXC:
		break;
	}
	return false;
}

void container_source_cancel(struct container_source *source)
{
	atomic_store(&source->cancelled, true);
}

static bool is_socket(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISSOCK(status.st_mode);
}

/* Where the socket is now, if it is. */
static int find_socket(const struct container_source *source, char path[static PATH_BYTES],
		       struct err *err)
{
	snprintf(path, PATH_BYTES, "%s", source->path);
	if (is_socket(path))
		return 0;
	snprintf(path, PATH_BYTES, HOST_ROOT "%.*s", (int)(PATH_BYTES - sizeof(HOST_ROOT)),
		 source->path);
	if (is_socket(path))
		return 0;
	return err_set(err, ERR_NOT_FOUND, "no socket \"%s\"", source->path);
}

/* ---- the Engine API ---- */

static int take_bytes(void *context, struct slice bytes, struct err *err)
{
	struct strbuf *body = context;

	(void)err;
	strbuf_add_slice(body, bytes);
	return 0;
}

static int ask_engine(struct container_source *source, const char *path, struct slice id,
		      struct meta_labels *ret, struct err *err)
{
	struct strbuf url = { 0 }, body = { 0 };
	struct fetch fetch = {
		.socket_path = path,
		.deadline_at_ns = source->deadline_at_ns,
		.body_bytes_max = CONTAINER_SOURCE_ANSWER_BYTES_MAX,
		.take = take_bytes,
		.context = &body,
		.cancelled = &source->cancelled,
	};
	int status, code;

	strbuf_addf(&url, "http://localhost:80/containers/");
	fetch_add_path(&url, id);
	strbuf_add_text(&url, "/json");
	fetch.url = strbuf_text(&url);
	code = fetch_get(&fetch, &status, err);
	if (!code && status == 200)
		code = engine_answer_read(strbuf_slice(&body), id, ret, err);
	else if (!code && status != 404)
		code = err_set(err, ERR_UNAVAILABLE, "\"%s\" answers %d", path, status);
	strbuf_free(&url);
	strbuf_free(&body);
	if (code)
		return err_wrap(err, "ask \"%s\"", path);
	return status == 200;
}

/* ---- the container runtime interface ---- */

/* 1: *ret_message is appended the answer; 0: it is not there. */
static int call(struct container_source *source, const char *method, struct slice request,
		struct strbuf *ret_message, struct err *err)
{
	struct net_call call = {
		.method = "POST",
		.content_type = "application/grpc",
		.body = request,
		.grpc = true,
		.timeout_ns = source->deadline_at_ns - clock_monotonic_ns(),
		.body_bytes_max = CONTAINER_SOURCE_ANSWER_BYTES_MAX,
	};
	char method_path[128];
	struct net_reply reply;
	int code;

	snprintf(method_path, sizeof(method_path), CRI_SERVICE "%s", method);
	call.path = method_path;
	if (call.timeout_ns <= 0)
		return err_set(err, ERR_DEADLINE, "%s: no answer in time", method);
	if (atomic_load(&source->cancelled))
		return err_set(err, ERR_CANCELLED, "%s: the request was abandoned", method);
	code = net_client_call(source->client, &call, &reply, err);
	if (code)
		return code;
	if (reply.grpc_status == GRPC_UNIMPLEMENTED)
		code = err_set(err, ERR_UNSUPPORTED, "%s: not served here", method);
	else if (reply.status != 200 || (reply.grpc_status && reply.grpc_status != GRPC_NOT_FOUND))
		code = err_set(err, ERR_UNAVAILABLE, "%s: status %d, %d: %.200s", method,
			       reply.status, reply.grpc_status, reply.grpc_message);
	else if (!reply.grpc_status)
		code = 1;
	if (code == 1)
		strbuf_add_slice(ret_message, strbuf_slice(&reply.body));
	strbuf_free(&reply.body);
	return code;
}

/* True if it names no image as people do: "sha256:..." or the digits alone. */
static bool is_digest(struct slice image)
{
	if (slice_starts_with(image, SLICE_LITERAL("sha256:")))
		return true;
	if (image.len != 64)
		return false;
	for (size_t i = 0; i < image.len; i++)
		if (slice_hex_digit(image.data[i]) < 0)
			return false;
	return true;
}

static void add_image(struct container_source *source, struct slice request, struct slice listed,
		      struct meta_labels *ret)
{
	struct strbuf message = { 0 }, image = { 0 };

	if (is_digest(listed) && call(source, "ContainerStatus", request, &message, NULL) == 1 &&
	    !cri_read_status(strbuf_slice(&message), &image, NULL) && image.len)
		listed = strbuf_slice(&image);
	meta_labels_add(ret, "__meta_kubernetes_pod_container_image", listed);
	strbuf_free(&message);
	strbuf_free(&image);
}

/* The container, then the sandbox of its pod; an id may be a sandbox's, too. */
static int ask_interface(struct container_source *source, struct slice id, struct meta_labels *ret,
			 struct err *err)
{
	struct strbuf request = { 0 }, message = { 0 }, sandbox = { 0 }, image = { 0 };
	bool is_container = false;
	int code;

	cri_put_list_request(&request, id);
	code = call(source, "ListContainers", strbuf_slice(&request), &message, err);
	if (code == 1)
		code = cri_read_container(strbuf_slice(&message), id, ret, &sandbox, &image, err);
	if (code == 1) {
		is_container = true;
		strbuf_clear(&request);
		cri_put_status_request(&request, id);
		add_image(source, strbuf_slice(&request), strbuf_slice(&image), ret);
	}
	if (code >= 0) {
		struct slice pod = is_container ? strbuf_slice(&sandbox) : id;

		strbuf_clear(&request);
		strbuf_clear(&message);
		cri_put_list_request(&request, pod);
		code = call(source, "ListPodSandbox", strbuf_slice(&request), &message, err);
		if (code == 1)
			code = cri_read_sandbox(strbuf_slice(&message), pod, ret, err);
		if (code == 0)
			code = is_container;
	}
	strbuf_free(&request);
	strbuf_free(&message);
	strbuf_free(&sandbox);
	strbuf_free(&image);
	return code;
}

static int ask_cri(struct container_source *source, const char *path, struct slice id,
		   struct meta_labels *ret, struct err *err)
{
	char address[PATH_BYTES + 8];
	int code = 0;

	snprintf(address, sizeof(address), "unix:%s", path);
	if (!source->client)
		code = net_client_new(address, NULL, &source->client, err);
	if (!code)
		code = ask_interface(source, id, ret, err);
	if (code < 0) {
		net_client_free(source->client);
		source->client = NULL;
		return err_wrap(err, "ask \"%s\"", path);
	}
	return code;
}

int container_source_ask(struct container_source *source, struct slice id, struct meta_labels *ret,
			 struct err *err)
{
	struct meta_labels found = { 0 };
	char path[PATH_BYTES];
	int code = find_socket(source, path, err);

	if (code)
		return code;
	source->deadline_at_ns = clock_monotonic_ns() + CONTAINER_SOURCE_DEADLINE_NS;
	code = source->is_engine ? ask_engine(source, path, id, &found, err)
				 : ask_cri(source, path, id, &found, err);
	if (code == 1)
		meta_labels_copy(ret, &found);
	meta_labels_free(&found);
	return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's uploads against a real server on a free port: each binary goes once, however many
 * agents offer it; what is too large does not; stopping does not wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/export/debuginfo_client.h"
#include "agent/export/debuginfo_upload.h"
#include "agent/files/root_files.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "server/server.h"

#define AGENTS 4
#define TRIES_MAX 2000
#define PAUSE_US 10000 /* between two looks at whether it has happened */

struct world {
	char path[64], address[64];
	struct server *server;
	struct root_files *files;
	struct elf_info info;
	int fd; /* this program */
};

static int set_up(void **state)
{
	struct world *world = mem_new(struct world);
	struct server_options options = { .storage_path = world->path,
					  .http_address = "127.0.0.1:0" };
	struct err err;

	*state = world;
	log_set(LOG_ERROR, LOG_LOGFMT);
	assert_int_equal(root_files_new(&world->files, &err), 0); /* before there are threads */
	snprintf(world->path, sizeof(world->path), "/tmp/firn-upload-XXXXXX");
	assert_non_null(mkdtemp(world->path));
	if (server_start(&options, &world->server, &err))
		fail_msg("%s", err.message);
	snprintf(world->address, sizeof(world->address), "127.0.0.1:%u",
		 server_port(world->server));
	world->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_read_info(world->fd, "self", &world->info, &err), 0);
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;
	char command[128];

	close(world->fd);
	server_stop(world->server);
	root_files_unref(world->files);
	snprintf(command, sizeof(command), "rm -r '%s'", world->path);
	assert_int_equal(system(command), 0);
	free(world);
	return 0;
}

/* The value of a line of /metrics. */
static double metric(const char *line)
{
	struct strbuf text = { 0 };
	const char *found;
	double value;

	metrics_render(&text);
	found = strstr(strbuf_text(&text), line);
	value = found ? strtod(found + strlen(line), NULL) : -1;
	strbuf_free(&text);
	return value;
}

static bool wait_for(const char *line, double wanted)
{
	for (int i = 0; i < TRIES_MAX; i++) {
		if (metric(line) >= wanted)
			return true;
		usleep(PAUSE_US);
	}
	return false;
}

static struct debuginfo_upload *new_upload(const struct world *world, uint64_t file_bytes_max)
{
	struct debuginfo_upload_options options = { .address = world->address,
						    .files = world->files,
						    .file_bytes_max = file_bytes_max,
						    .retry_ns = 20 * CLOCK_NS_PER_MS };
	struct debuginfo_upload *upload;

	assert_int_equal(debuginfo_upload_new(&options, &upload, NULL), 0);
	return upload;
}

static void offer(struct debuginfo_upload *upload, const struct world *world)
{
	const struct agent_binary binary = { slice_of(world->info.build_id),
					     SLICE_LITERAL("/opt/self"), world->fd, getpid() };

	debuginfo_upload_offer(upload, &binary);
}

static uint64_t extract_bytes(const struct world *world)
{
	struct elf_extract *extract;
	uint64_t bytes;

	assert_int_equal(elf_extract_open(world->fd, "self", UINT64_MAX, &extract, NULL), 0);
	bytes = elf_extract_bytes(extract);
	elf_extract_close(extract);
	return bytes;
}

/* Its size is what may go in a second: the end may not come before about that time. */
static void a_large_file_takes_its_time(void **state)
{
	struct world *world = *state;
	struct debuginfo_upload_options options = { .address = world->address,
						    .files = world->files };
	struct debuginfo_upload *upload;
	double kept = metric("firn_debuginfo_uploads_total{result=\"kept\"} ");
	int64_t began_ns;

	options.bytes_per_s = extract_bytes(world);
	assert_int_equal(debuginfo_upload_new(&options, &upload, NULL), 0);
	began_ns = clock_monotonic_ns();
	offer(upload, world);
	assert_true(wait_for("firn_debuginfo_uploads_total{result=\"kept\"} ", kept + 1));
	assert_true(clock_monotonic_ns() - began_ns > CLOCK_NS_PER_S / 2);
	debuginfo_upload_free(upload);
}

static void a_binary_goes_once_for_all_agents(void **state)
{
	struct world *world = *state;
	struct debuginfo_upload *agents[AGENTS];

	for (int i = 0; i < AGENTS; i++)
		agents[i] = new_upload(world, 0);
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < AGENTS; i++)
			offer(agents[i], world);
	assert_true(wait_for("firn_agent_debuginfo_files_total{result=\"present\"} ", AGENTS - 1));
	/* Who sent it counts it after the server has, and after others have seen it there. */
	assert_true(wait_for("firn_agent_debuginfo_files_total{result=\"sent\"} ", 1));
	assert_true(metric("firn_agent_debuginfo_files_total{result=\"sent\"} ") == 1);
	assert_true(metric("firn_debuginfo_uploads_total{result=\"kept\"} ") == 1);
	assert_true(metric("\nfirn_debuginfo_received_bytes_total ") ==
		    (double)extract_bytes(world));
	for (int i = 0; i < AGENTS; i++)
		debuginfo_upload_free(agents[i]);
}

static void what_is_too_large_stays(void **state)
{
	struct world *world = *state;
	struct debuginfo_upload *upload = new_upload(world, 1000);

	offer(upload, world);
	assert_true(wait_for("firn_agent_debuginfo_files_total{result=\"too_large\"} ", 1));
	debuginfo_upload_free(upload);
}

static void a_server_that_is_away_is_tried_again(void **state)
{
	struct world *world = *state;
	struct debuginfo_upload *upload;

	snprintf(world->address, sizeof(world->address), "127.0.0.1:1");
	upload = new_upload(world, 0);
	offer(upload, world);
	assert_true(wait_for("firn_agent_debuginfo_files_total{result=\"failed\"} ", 3));
	debuginfo_upload_free(upload);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_binary_goes_once_for_all_agents),
		TEST(a_large_file_takes_its_time),
		TEST(what_is_too_large_stays),
		TEST(a_server_that_is_away_is_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

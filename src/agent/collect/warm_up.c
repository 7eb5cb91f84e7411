/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/warm_up.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/procs/maps_file.h"
#include "base/clock.h"
#include "base/mem.h"

/* What takes longer is found when samples fall into it. */
#define WAIT_NS (2 * CLOCK_NS_PER_S)

/* Known from now on, with its table when it is one to unwind. */
static void fill(struct binaries *binaries, struct lender_answer *answer, uint32_t pid)
{
	int64_t now_ns = clock_monotonic_ns();
	struct binary *binary = NULL;

	if (answer->is_done && answer->elf && answer->fd >= 0)
		binary = binaries_get(binaries, &answer->key, now_ns);
	if (binary) {
		binaries_fill(binaries, binary, pid, answer->fd, answer->elf,
			      answer->path ? answer->path : "", now_ns);
		answer->fd = -1;
		answer->elf = NULL;
		binary_unref(binary, now_ns);
	}
	lender_answer_free(answer);
}

static void take_files(struct binaries *binaries, struct lender *lender, uint32_t pid)
{
	struct lender_answer answer;

	lender_wait(lender, WAIT_NS);
	while (lender_take(lender, &answer))
		fill(binaries, &answer, pid);
}

/* Asks for the files, of which all but the time of change is known. */
static void ask_for_keys(struct lender *lender, uint32_t pid, const struct maps_file *maps)
{
	for (size_t i = 0; i < maps->count; i++) {
		const struct maps_range *range = &maps->ranges[i];
		const struct lender_request request = {
			.wish = LENDER_KEY,
			.place = { .pids = { pid },
				   .pids_count = 1,
				   .start = range->start,
				   .end = range->end },
			.key = { .inode = range->inode, .device = range->device },
			.path = range->path,
		};

		if (range->kind == MAPPING_FILE)
			lender_ask(lender, &request);
	}
}

static bool is_open(const struct binaries *binaries, const struct file_key *key)
{
	const struct binary *binary = binaries_find(binaries, key);

	return binary && binary->opened;
}

static void ask_for_files(const struct binaries *binaries, struct lender *lender)
{
	struct lender_answer *answers = NULL, answer;
	size_t count = 0, room = 0;

	lender_wait(lender, WAIT_NS);
	while (lender_take(lender, &answer)) {
		mem_grow(answers, count, room);
		answers[count++] = answer;
	}
	for (size_t i = 0; i < count; i++) {
		struct lender_request request = answers[i].request;

		request.wish = LENDER_MAPPED;
		request.key = answers[i].key;
		if (answers[i].is_done && !is_open(binaries, &request.key))
			lender_ask(lender, &request);
		lender_answer_free(&answers[i]);
	}
	free(answers);
}

void warm_up_process(struct binaries *binaries, struct lender *lender, uint32_t pid)
{
	struct maps_file maps = { 0 };
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (maps_file_read(&maps, fd, NULL) > 0) {
		ask_for_keys(lender, pid, &maps);
		ask_for_files(binaries, lender);
		take_files(binaries, lender, pid);
	}
	maps_file_free(&maps);
	close(fd);
}

void warm_up_program(struct binaries *binaries, struct lender *lender, const char *path)
{
	char *real = realpath(path, NULL); /* as the kernel will call it */
	const struct lender_request request = { .wish = LENDER_PROGRAM, .path = real };

	if (real && lender_ask(lender, &request)) /* below our own root */
		take_files(binaries, lender, (uint32_t)getpid());
	free(real);
}

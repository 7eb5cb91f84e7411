/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a scrape configuration that can be used, or an error that names the file. */
#include <stdlib.h>
#include <string.h>

#include "server/scrape/target.h"

#define FILE_NAME "dir/firn.yml"
#define JOBS 20u /* that are tried */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_profile(const struct scrape_job *job, const struct scrape_profile *profile)
{
	struct found *found = found_new();
	struct scrape_origin origin = { found, NULL, profile };
	struct scrape_target *target;
	struct target_labels made;

	found_label(found, SLICE_LITERAL("__address__"), SLICE_LITERAL("host"));
	found_label(found, SLICE_LITERAL("kind"), SLICE_LITERAL("a"));
	found_target(found, 0);
	origin.target = found->targets;
	target_labels_make(job, profile, origin.target, &made);
	if (!made.reason[0]) {
		target = target_new(job, &origin, &made);
		if (target->interval_ns <= 0 || target->timeout_ns <= 0 ||
		    strncmp(target->url, "http", 4) != 0)
			abort();
		target_free(target);
	}
	target_labels_free(&made);
	found_free(found);
}

static void check(const struct scrape_config *config)
{
	for (size_t i = 0; i < config->jobs_count && i < JOBS; i++) {
		const struct scrape_job *job = &config->jobs[i];

		if (!job->name.len || job->interval_ns <= 0 || job->timeout_ns <= 0)
			abort();
		for (size_t j = 0; j < job->profiles_count && j < JOBS; j++) {
			const struct scrape_profile *profile = &job->profiles[j];

			if (profile->enabled &&
			    (!profile->path.len || (profile->delta && profile->seconds < 1)))
				abort();
			try_profile(job, profile);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scrape_config *config;
	struct err err = { 0 };

	if (!scrape_config_parse(slice_from(data, size), FILE_NAME, &config, &err)) {
		check(config);
		scrape_config_free(config);
	} else if (strncmp(err.message, FILE_NAME ":", strlen(FILE_NAME ":")) != 0) {
		abort();
	}
	return 0;
}

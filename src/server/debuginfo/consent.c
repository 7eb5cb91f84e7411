/* SPDX-License-Identifier: Apache-2.0 */
#include "server/debuginfo/consent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/whole_file.h"
#include "server/debuginfo/debuginfod.h"

#define ANSWER_BYTES_MAX ((size_t)64 << 10)

static void path_of(const struct debuginfo *debuginfo, const char *end, struct strbuf *ret)
{
	strbuf_addf(ret, "%s/debuginfod-consent%s", debuginfo->path, end);
}

static void write_answer(const struct debuginfo *debuginfo, bool consents, struct strbuf *out)
{
	strbuf_addf(out, "%s %s\n", consents ? "yes" : "no", strbuf_text(&debuginfo->offered));
}

/* What was answered about these servers. */
static enum debuginfo_consent read_answer(const struct debuginfo *debuginfo)
{
	enum debuginfo_consent consent = DEBUGINFO_UNANSWERED;
	struct strbuf path = { 0 }, text = { 0 }, wanted = { 0 };

	path_of(debuginfo, "", &path);
	if (!whole_file_read(strbuf_text(&path), ANSWER_BYTES_MAX, &text, NULL)) {
		write_answer(debuginfo, true, &wanted);
		if (slice_equal(strbuf_slice(&text), strbuf_slice(&wanted)))
			consent = DEBUGINFO_CONSENTED;
		strbuf_clear(&wanted);
		write_answer(debuginfo, false, &wanted);
		if (slice_equal(strbuf_slice(&text), strbuf_slice(&wanted)))
			consent = DEBUGINFO_REFUSED;
	}
	strbuf_free(&path);
	strbuf_free(&text);
	strbuf_free(&wanted);
	return consent;
}

/* In its place as a whole, and on the disk, before it counts. */
static int keep_answer(const struct debuginfo *debuginfo, bool consents, struct err *err)
{
	struct strbuf path = { 0 }, made = { 0 }, text = { 0 };
	int fd, rc;

	path_of(debuginfo, "", &path);
	path_of(debuginfo, ".new", &made);
	write_answer(debuginfo, consents, &text);
	fd = open(strbuf_text(&made), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	rc = fd < 0 ? -errno : whole_file_write(fd, strbuf_slice(&text));
	if (!rc && fsync(fd))
		rc = -errno;
	if (!rc && rename(strbuf_text(&made), strbuf_text(&path)))
		rc = -errno;
	if (fd >= 0)
		close(fd);
	if (rc)
		err_set_errno(err, -rc, "write \"%s\"", strbuf_text(&path));
	strbuf_free(&path);
	strbuf_free(&made);
	strbuf_free(&text);
	return rc ? -ERR_IO : 0;
}

static int start_asking(struct debuginfo *debuginfo, struct err *err)
{
	struct debuginfod *debuginfod = atomic_load(&debuginfo->debuginfod);
	int rc = 0;

	if (debuginfod) {
		debuginfod_pause(debuginfod, false);
		return 0;
	}
	rc = debuginfod_start(debuginfo, &debuginfod, err);
	if (!rc)
		atomic_store(&debuginfo->debuginfod, debuginfod);
	return rc;
}

/* The offer as a list of addresses, which the options then have. */
static void split_offer(struct debuginfo *debuginfo)
{
	struct debuginfo_options *options = &debuginfo->options;
	char *text, *rest = NULL;
	size_t capacity = 0;

	strbuf_add_text(&debuginfo->offered, options->debuginfod_offered);
	strbuf_add_text(&debuginfo->offered_texts, options->debuginfod_offered);
	strbuf_text(&debuginfo->offered_texts);
	for (text = strtok_r(debuginfo->offered_texts.data, " ", &rest); text;
	     text = strtok_r(NULL, " ", &rest)) {
		mem_grow(debuginfo->offered_urls, options->debuginfod_urls_count, capacity);
		debuginfo->offered_urls[options->debuginfod_urls_count++] = text;
	}
	options->debuginfod_urls = debuginfo->offered_urls;
}

int consent_open(struct debuginfo *debuginfo, struct err *err)
{
	const struct debuginfo_options *options = &debuginfo->options;
	enum debuginfo_consent consent = DEBUGINFO_NOT_OFFERED;

	if (options->debuginfod_urls_count) {
		consent = DEBUGINFO_CONFIGURED;
		for (size_t i = 0; i < options->debuginfod_urls_count; i++)
			strbuf_addf(&debuginfo->offered, "%s%s", i ? " " : "",
				    options->debuginfod_urls[i]);
	} else if (options->debuginfod_offered && *options->debuginfod_offered) {
		split_offer(debuginfo);
		consent = read_answer(debuginfo);
	}
	atomic_store(&debuginfo->consent, consent);
	if (consent == DEBUGINFO_UNANSWERED)
		log_info("debuginfod", "may have names for stripped programs; waiting for consent",
			 "servers=\"%s\" how=\"firn debuginfo fetch yes\"",
			 strbuf_text(&debuginfo->offered));
	return consent == DEBUGINFO_CONFIGURED || consent == DEBUGINFO_CONSENTED
		       ? start_asking(debuginfo, err)
		       : 0;
}

void consent_close(struct debuginfo *debuginfo)
{
	strbuf_free(&debuginfo->offered);
	strbuf_free(&debuginfo->offered_texts);
	free(debuginfo->offered_urls);
}

const char *debuginfo_consent_name(enum debuginfo_consent consent)
{
	static const char *const names[] = {
		[DEBUGINFO_NOT_OFFERED] = "not offered",
		[DEBUGINFO_CONFIGURED] = "configured",
		[DEBUGINFO_UNANSWERED] = "unanswered",
		[DEBUGINFO_CONSENTED] = "yes",
		[DEBUGINFO_REFUSED] = "no",
	};

	return names[consent];
}

enum debuginfo_consent debuginfo_get_consent(struct debuginfo *debuginfo, struct slice *ret_servers)
{
	*ret_servers = strbuf_slice(&debuginfo->offered);
	return atomic_load(&debuginfo->consent);
}

int debuginfo_answer(struct debuginfo *debuginfo, bool consents, struct err *err)
{
	enum debuginfo_consent consent = atomic_load(&debuginfo->consent);
	struct debuginfod *debuginfod;
	int rc;

	if (consent == DEBUGINFO_NOT_OFFERED || consent == DEBUGINFO_CONFIGURED)
		return err_set(err, ERR_NOT_FOUND, "%s",
			       consent == DEBUGINFO_CONFIGURED
				       ? "debuginfod servers are asked as --debuginfod-url says"
				       : "this server offers no debuginfod server: name one with "
					 "--debuginfod-url");
	lock_take(&debuginfo->consent_lock);
	rc = keep_answer(debuginfo, consents, err);
	if (!rc && consents)
		rc = start_asking(debuginfo, err);
	debuginfod = atomic_load(&debuginfo->debuginfod);
	if (!rc && !consents && debuginfod)
		debuginfod_pause(debuginfod, true);
	if (!rc)
		atomic_store(&debuginfo->consent,
			     consents ? DEBUGINFO_CONSENTED : DEBUGINFO_REFUSED);
	lock_give(&debuginfo->consent_lock);
	return rc;
}

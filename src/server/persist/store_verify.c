/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_verify - reads and decodes every byte of a store, without a lock and without changing it.
 *
 * Lines of the report name file, place and problem. Lines that begin with "note: " are no problem:
 * the torn tail that a crash leaves was never acknowledged. A running server may replace files
 * meanwhile; when one is missing that the manifest named, the whole check begins again.
 */
#include <errno.h>

#include "base/mem.h"
#include "server/persist/store_int.h"

#define TRIES_MAX 5

struct verify {
	const struct vfs *vfs;
	const char *path;
	struct manifest manifest;
	struct layout_list list;
	struct strbuf report;
	uint64_t problems;
	bool vanished; /* a file that should be there is not */
};

static void problem(struct verify *verify, int rc, const struct err *err)
{
	assert(rc < 0 && err->code);
	if (rc == -ERR_NOT_FOUND)
		verify->vanished = true;
	verify->problems++;
	strbuf_addf(&verify->report, "%s\n", err->message);
}

static int verify_part(struct verify *verify, const struct part_info *info, struct err *err)
{
	struct part_reader *reader;
	int rc = part_reader_open(verify->vfs, verify->path, info, &reader, err);

	if (rc)
		return rc;
	rc = part_reader_verify(reader, err);
	part_reader_close(reader);
	return rc;
}

static void verify_parts(struct verify *verify)
{
	const struct manifest_state *state = &verify->manifest.state;

	for (size_t i = 0; i < state->parts_count; i++) {
		struct err err = { 0 };
		int rc;

		if (state->parts[i].damaged)
			rc = err_set(&err, ERR_CORRUPT, "part %llu was found damaged and set aside",
				     (unsigned long long)state->parts[i].number);
		else
			rc = verify_part(verify, &state->parts[i], &err);
		if (rc)
			problem(verify, rc, &err);
	}
}

static void verify_state(struct verify *verify)
{
	uint64_t generation = verify->manifest.state.state_generation;
	struct layout_path path = layout_path(verify->path, LAYOUT_STATE, generation);
	struct strbuf bytes = { 0 };
	struct ledger ledger;
	struct err err = { 0 };
	int rc;

	if (!generation)
		return;
	rc = vfs_read_whole(verify->vfs, path.text, LEDGER_FILE_BYTES_MAX, &bytes, &err);
	if (!rc) {
		rc = ledger_decode_file(strbuf_slice(&bytes), generation, &ledger, &err);
		if (rc)
			err_wrap(&err, "\"%s\"", path.text);
		else
			ledger_fini(&ledger);
	}
	if (rc)
		problem(verify, rc, &err);
	strbuf_free(&bytes);
}

static int verify_record(void *context, const struct wal_record *record, struct err *err)
{
	struct memtable_window window;
	struct tables_image batch;
	int rc;

	(void)context;
	if (record->type != WAL_RECORD_BATCH)
		return err_set(err, ERR_UNSUPPORTED, "record has type %u", record->type);
	rc = memtable_decode_batch(record->payload, &window, &batch, err);
	if (!rc)
		tables_image_free(&batch);
	return rc;
}

static void verify_log(struct verify *verify)
{
	const struct manifest_state *state = &verify->manifest.state;
	struct wal_chain chain = { .last = state->log_from, .report = &verify->report };

	for (size_t i = 0; i < verify->list.count; i++) {
		const struct layout_entry *entry = &verify->list.entries[i];
		struct layout_path path = layout_join(verify->path, entry->text);
		struct strbuf bytes = { 0 };
		struct err err = { 0 };
		int rc;

		if (entry->name.kind != LAYOUT_WAL || entry->name.number < state->log_generation)
			continue;
		rc = vfs_read_whole(verify->vfs, path.text, WAL_SEGMENT_BYTES_MAX, &bytes, &err);
		if (rc)
			problem(verify, rc, &err);
		else
			wal_read_segment(&chain, &entry->name, strbuf_slice(&bytes), verify_record,
					 NULL);
		strbuf_free(&bytes);
	}
	assert(chain.last.sequence >= state->log_from.sequence);
	verify->problems += chain.damages;
}

static void add_quarantined(void *context, const char *name)
{
	struct verify *verify = context;

	verify->problems++;
	strbuf_addf(&verify->report,
		    LAYOUT_QUARANTINE
		    "/%s: was set aside as damaged; delete it when it is no longer needed\n",
		    name);
}

static int verify_once(struct verify *verify, struct err *err)
{
	struct layout_path quarantine = layout_join(verify->path, LAYOUT_QUARANTINE);
	struct err cause = { 0 };
	int rc = manifest_load(&verify->manifest, verify->vfs, verify->path, false, &cause);

	assert(!verify->problems && !verify->report.len && !verify->list.count);
	if (rc == -ERR_CORRUPT) {
		problem(verify, rc, &cause);
		return 0;
	}
	if (rc == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "no firn store in \"%s\"", verify->path);
	if (!rc)
		rc = layout_list(verify->vfs, verify->path, &verify->list, &cause);
	if (rc) {
		if (err)
			*err = cause;
		return rc;
	}
	verify_parts(verify);
	verify_state(verify);
	verify_log(verify);
	rc = verify->vfs->list_dir(verify->vfs, quarantine.text, add_quarantined, verify);
	if (rc && rc != -ENOENT)
		return err_set_errno(err, -rc, "list directory \"%s\"", quarantine.text);
	return 0;
}

static void verify_free(struct verify *verify)
{
	manifest_fini(&verify->manifest);
	free(verify->list.entries);
	strbuf_free(&verify->report);
}

int store_verify(const char *path, const struct vfs *vfs, struct strbuf *report, struct err *err)
{
	int rc = layout_check_dir(path, err);

	for (int tries = 1; !rc; tries++) {
		struct verify verify = { .vfs = vfs ? vfs : &vfs_posix, .path = path };
		bool again;

		rc = verify_once(&verify, err);
		again = !rc && verify.vanished && tries < TRIES_MAX;
		if (!rc && !again) {
			strbuf_add_slice(report, strbuf_slice(&verify.report));
			if (verify.problems)
				rc = err_set(err, ERR_CORRUPT, "store \"%s\" has %llu problems",
					     path, (unsigned long long)verify.problems);
		}
		verify_free(&verify);
		if (!again)
			return rc;
	}
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deleting: what is in memory becomes a part first, then a tombstone with a larger number than all
 * parts is put in force. Snapshots taken from then on leave out what it means, and compaction
 * writes parts without it. A tombstone is done when no part has it before it any more.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/persist/part/part_key.h"
#include "server/persist/store_int.h"

#define TOMBSTONES_IN_FORCE_MAX 1000u /* each is looked at by every query */

int store_load_tombstones(struct store_disk *store, struct err *err)
{
	struct tombstones *made, *old;
	int rc = tombstones_of(&store->manifest.state, &made, err);

	lock_assert_held(&store->seal_lock);
	if (rc)
		return rc;
	assert(made->count <= store->manifest.state.tombstones_count);
	lock_take(&store->lock);
	old = store->tombstones;
	store->tombstones = made;
	lock_give(&store->lock);
	tombstones_unref(old);
	if (!store->options.read_only)
		metric_set(&store_tombstones, (int64_t)made->count);
	return 0;
}

static bool is_done(const struct manifest_state *state, const struct manifest_tombstone *tombstone)
{
	for (size_t i = 0; i < state->parts_count; i++)
		if (!state->parts[i].damaged &&
		    tombstone_meets(tombstone->number, tombstone->from_ns, tombstone->to_ns,
				    &state->parts[i]))
			return false;
	return true;
}

/* Those that are done longest are given up when they are many. */
static void drop_old(const struct manifest_state *state, struct manifest_edit *edit)
{
	size_t done = 0;

	for (size_t i = 0; i < state->tombstones_count; i++)
		done += state->tombstones[i].done_ns != 0;
	for (size_t i = 0; i < state->tombstones_count && done > MANIFEST_TOMBSTONES_KEPT; i++) {
		if (!state->tombstones[i].done_ns || edit->items.len > MANIFEST_EDIT_BYTES_MAX / 2)
			continue;
		manifest_edit_drop_tombstone(edit, state->tombstones[i].number);
		done--;
	}
}

int store_settle_tombstones(struct store_disk *store, struct err *err)
{
	const struct manifest_state *state = &store->manifest.state;
	struct manifest_edit edit = { 0 };
	int64_t now_ns = store_now_ns(store);
	int rc = 0;

	lock_assert_held(&store->seal_lock);
	for (size_t i = 0; i < state->tombstones_count; i++) {
		const struct manifest_tombstone *tombstone = &state->tombstones[i];

		if (tombstone->done_ns || !is_done(state, tombstone) ||
		    edit.items.len > MANIFEST_EDIT_BYTES_MAX / 4)
			continue; /* or the next time */
		manifest_edit_tombstone_done(&edit, tombstone->number, now_ns ? now_ns : 1);
		log_info("store", "deleted data was removed from disk",
			 "tombstone=%llu selector='%s'", (unsigned long long)tombstone->number,
			 tombstone->selector);
	}
	drop_old(state, &edit);
	if (edit.items.len) {
		rc = manifest_commit(&store->manifest, &edit, err);
		if (!rc)
			rc = store_load_tombstones(store, err);
	}
	manifest_edit_free(&edit);
	return rc;
}

static int put_in_force(struct store_disk *store, struct manifest_tombstone *tombstone,
			struct err *err)
{
	struct manifest_edit edit = { 0 };
	int rc;

	lock_assert_held(&store->seal_lock);
	assert(store->tombstones && !tombstone->number);
	if (store->tombstones->count >= TOMBSTONES_IN_FORCE_MAX)
		return err_set(err, ERR_BUSY, "%u deletions are being carried out; try again later",
			       TOMBSTONES_IN_FORCE_MAX);
	tombstone->number = manifest_take_number(&store->manifest);
	assert(tombstone->from_ns < tombstone->to_ns && !tombstone->done_ns);
	tombstone->created_ns = store_now_ns(store);
	manifest_edit_add_tombstone(&edit, tombstone);
	rc = manifest_commit(&store->manifest, &edit, err);
	manifest_edit_free(&edit);
	if (!rc)
		rc = store_load_tombstones(store, err);
	if (!rc)
		rc = store_settle_tombstones(store, err); /* nothing may be stored at all */
	store_note_fault(store, rc, err);
	return rc;
}

/* The last matcher of a tenant's order. Tenants' names need no quoting: see serve. */
static void add_tenant_matcher(struct strbuf *selector, struct slice tenant)
{
	strbuf_addf(selector, PART_KEY_TENANT "=\"%.*s\"}", SLICE_FMT(tenant));
}

/* To a canonical selector. */
static void add_tenant(struct strbuf *selector, bool has_matchers, struct slice tenant)
{
	if (selector->len && selector->data[selector->len - 1] == '}')
		selector->len--;
	else
		strbuf_add_byte(selector, '{');
	if (has_matchers)
		strbuf_add_byte(selector, ',');
	add_tenant_matcher(selector, tenant);
}

/* True if the order is that tenant's. Matchers before the last may name any. */
static bool is_of_tenant(const char *selector, struct slice tenant)
{
	struct strbuf end = { 0 };
	struct slice text = slice_of(selector);
	bool is;

	add_tenant_matcher(&end, tenant);
	is = text.len > end.len &&
	     slice_equal(slice_tail(text, text.len - end.len), strbuf_slice(&end)) &&
	     strchr("{,", text.data[text.len - end.len - 1]);
	strbuf_free(&end);
	return is;
}

/* The selector in its canonical spelling. */
static int read_selector(const struct store_delete *order, struct strbuf *ret, struct err *err)
{
	struct selector selector;
	bool everything;
	int rc = selector_parse(order->selector, &selector, err);

	if (rc)
		return rc;
	everything = !selector.has_type && !selector.matchers_count;
	selector_format(ret, &selector);
	if (order->one_tenant)
		add_tenant(ret, selector.matchers_count > 0, order->tenant);
	selector_free(&selector);
	if (everything)
		return err_set(err, ERR_INVALID,
			       "the selector means everything; name a type or a label, for example "
			       "{comm=~\".*\"}");
	if (ret->len > MANIFEST_SELECTOR_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "the selector has %zu bytes, limit %u", ret->len,
			       MANIFEST_SELECTOR_BYTES_MAX);
	return 0;
}

int store_disk_delete(struct store *base, const struct store_delete *order, uint64_t *ret_number,
		      struct err *err)
{
	struct store_disk *store = store_disk_of(base);
	struct strbuf selector = { 0 };
	char by[MANIFEST_BY_BYTES_MAX];
	struct manifest_tombstone tombstone = { .from_ns = order->from_ns,
						.to_ns = order->to_ns,
						.by = by };
	struct err cause = { 0 };
	int rc = read_selector(order, &selector, &cause);

	snprintf(by, sizeof(by), "%s", order->by);
	tombstone.selector = strbuf_text(&selector);
	if (!rc && order->from_ns >= order->to_ns)
		rc = err_set(&cause, ERR_INVALID, "the range is empty: it ends before it begins");
	if (!rc)
		rc = store_disk_seal(store, &cause);
	if (!rc) {
		lock_take(&store->seal_lock);
		rc = put_in_force(store, &tombstone, &cause);
		lock_give(&store->seal_lock);
	}
	if (!rc) {
		log_info("store", "deletion ordered",
			 "tombstone=%llu by='%s' selector='%s' from_ns=%lld to_ns=%lld",
			 (unsigned long long)tombstone.number, by, tombstone.selector,
			 (long long)order->from_ns, (long long)order->to_ns);
		*ret_number = tombstone.number;
		if (store->maintenance_runs)
			throttle_wake(&store->throttle);
	} else if (err) {
		*err = cause;
	}
	strbuf_free(&selector);
	return rc;
}

void store_disk_deletes(struct store *base, const struct slice *tenant, struct store_deletes *ret)
{
	struct store_disk *store = store_disk_of(base);
	const struct manifest_state *state = &store->manifest.state;

	lock_take(&store->seal_lock);
	ret->count = 0;
	ret->items = mem_new_array(struct store_deleted, state->tombstones_count);
	for (size_t i = state->tombstones_count; i-- > 0;) {
		const struct manifest_tombstone *from = &state->tombstones[i];

		if (tenant && !is_of_tenant(from->selector, *tenant))
			continue;
		ret->items[ret->count++] = (struct store_deleted){
			.number = from->number,
			.selector = mem_strndup(from->selector, strlen(from->selector)),
			.by = mem_strndup(from->by, strlen(from->by)),
			.from_ns = from->from_ns,
			.to_ns = from->to_ns,
			.created_ns = from->created_ns,
			.done_ns = from->done_ns,
		};
	}
	lock_give(&store->seal_lock);
}

void store_deletes_free(struct store_deletes *deletes)
{
	for (size_t i = 0; i < deletes->count; i++) {
		free(deletes->items[i].selector);
		free(deletes->items[i].by);
	}
	free(deletes->items);
	*deletes = (struct store_deletes){ 0 };
}

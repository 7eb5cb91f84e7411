/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer_debuginfo - what debug information is here, is coming and is missing, as JSON or text; and
 * the text of source files.
 */
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/printable.h"
#include "codec/wire/json.h"
#include "codec/wire/shell_word.h"
#include "net/peer_user.h"
#include "server/debuginfo/distribution.h"
#include "server/debuginfo/local_source.h"
#include "server/debuginfo/source.h"
#include "server/serve/serve.h"
#include "server/serve/tenant.h"

#define REMEDIES_MAX 20u
#define SOURCE_PATIENCE_NS (10 * CLOCK_NS_PER_S)

static const char *kind_name(enum debuginfo_kind kind)
{
	static const char *const names[DEBUGINFO_KINDS] = {
		[DEBUGINFO_BINARY] = "program",
		[DEBUGINFO_DEBUG] = "debug",
		[DEBUGINFO_SOURCES] = "sources",
		[DEBUGINFO_PACKAGE] = "package",
	};

	return names[kind];
}

static void put_json_sections(struct json *json, unsigned sections)
{
	struct strbuf names = { 0 };
	struct slice rest;

	elf_sections_write(sections, &names);
	rest = strbuf_slice(&names);
	json_member_array(json, "sections");
	while (rest.len)
		json_put_string(json, slice_cut(rest, ',', &rest));
	json_close_array(json);
	strbuf_free(&names);
}

/* Each tenant is told of his own files; of what is not there, the tenant "" alone. */
struct listing {
	void *out;		    /* struct json, or struct strbuf */
	const struct slice *tenant; /* NULL: there are none */
};

static bool is_listed(const struct listing *listing, const struct debuginfo_record *record)
{
	return !listing->tenant || debuginfo_record_has_owner(record, *listing->tenant);
}

static bool is_other(const struct slice *tenant)
{
	return tenant && tenant->len;
}

static void put_json_file(void *context, const struct debuginfo_file *file)
{
	const struct debuginfo_record *record = file->record;
	const struct listing *listing = context;
	struct json *json = listing->out;

	if (!is_listed(listing, record))
		return;
	json_open_object(json);
	json_member_string(json, "build_id", file->build_id);
	json_member_text(json, "kind", kind_name(file->kind));
	json_member_text(json, "name", record->name);
	json_member_text(json, "from", debuginfo_origin_name(record->origin));
	json_member_uint(json, "bytes", record->bytes);
	if (file->kind < DEBUGINFO_SOURCES) {
		json_member_text(json, "quality", elf_quality_name(record->quality));
		put_json_sections(json, record->sections);
	}
	json_member_text(json, "sha256", record->sha256);
	json_member_int(json, "uploaded_ms", record->uploaded_at_ns / CLOCK_NS_PER_MS);
	json_member_int(json, "used_ms", file->used_at_ns / CLOCK_NS_PER_MS);
	json_close_object(json);
}

static void put_json_coming(void *context, const struct debuginfo_coming *coming)
{
	struct json *json = context;

	json_open_object(json);
	json_member_string(json, "build_id", coming->build_id);
	json_member_text(json, "state", coming->state);
	json_member_uint(json, "bytes", coming->bytes);
	json_member_uint(json, "received", coming->received);
	json_close_object(json);
}

static void put_json_asked(void *context, const struct debuginfo_asked *asked)
{
	struct json *json = context;

	json_open_object(json);
	json_member_string(json, "build_id", asked->build_id);
	json_member_text(json, "state", asked->state);
	if (asked->why.len) {
		json_member_string(json, "why", asked->why);
	}
	json_member_int(json, "at_ms", asked->at_ns / CLOCK_NS_PER_MS);
	if (!strcmp(asked->state, "fetching")) {
		json_member_uint(json, "received", asked->received);
		json_member_uint(json, "bytes", asked->bytes);
	}
	json_close_object(json);
}

/* What gives the names; empty when nothing of the kind does. */
static void put_command(struct strbuf *out, const struct resolver_missing *missing)
{
	if (missing->reason == RESOLVE_NO_FILE || missing->reason == RESOLVE_BAD_FILE) {
		strbuf_add_text(out, "firn debuginfo upload ");
		if (!missing->path.len)
			strbuf_add_text(out, "FILE");
		else
			shell_word_add(missing->path, out);
	} else if (missing->reason == RESOLVE_NO_SYMBOLS) {
		strbuf_add_text(out, "firn debuginfo upload DEBUG_FILE");
	}
}

/* What of a binary is missing, copied out of the resolver's lock. */
struct missing_binary {
	char *build_id, *path, *detail;
	enum resolve_reason reason;
	uint64_t cost_ns, of_ns;
};

struct missing_list {
	struct missing_binary *items;
	size_t count, capacity;
};

static char *copy_of(struct slice text)
{
	return mem_strndup(text.data, text.len);
}

static void copy_missing(void *context, const struct resolver_missing *missing)
{
	struct missing_list *list = context;

	mem_grow(list->items, list->count, list->capacity);
	list->items[list->count++] =
		(struct missing_binary){ copy_of(missing->build_id), copy_of(missing->path),
					 copy_of(missing->detail),   missing->reason,
					 missing->cost_ns,	     missing->of_ns };
}

/* The costliest first. */
static int compare_missing(const void *a, const void *b)
{
	const struct missing_binary *x = a, *y = b;

	if (x->cost_ns != y->cost_ns)
		return x->cost_ns > y->cost_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

static struct missing_list find_missing(struct serve *serve)
{
	struct missing_list list = { 0 };

	resolver_each_missing(serve->resolver, copy_missing, &list);
	if (list.count)
		qsort(list.items, list.count, sizeof(*list.items), compare_missing);
	return list;
}

static void free_missing(struct missing_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].build_id);
		free(list->items[i].path);
		free(list->items[i].detail);
	}
	free(list->items);
}

static struct resolver_missing missing_of(const struct missing_binary *binary)
{
	return (struct resolver_missing){
		slice_of(binary->build_id), slice_of(binary->path), binary->reason,
		slice_of(binary->detail),   binary->cost_ns,	    binary->of_ns
	};
}

/* How the names of the costliest files of this host are installed; returns how many of them. */
static size_t find_remedies(struct serve *serve, const struct missing_list *list,
			    struct distribution_remedy remedies[static REMEDIES_MAX])
{
	size_t count = list->count < REMEDIES_MAX ? list->count : REMEDIES_MAX;

	for (size_t i = 0; i < count; i++) {
		struct resolver_missing missing = missing_of(&list->items[i]);
		bool is_local = resolver_is_local(serve->resolver, missing.build_id, missing.path);

		remedies[i] = (struct distribution_remedy){ .path = is_local ? missing.path
									     : SLICE_LITERAL("") };
	}
	distribution_remedies("", remedies, count);
	return count;
}

static void put_remedy(struct json *json, struct distribution_remedy *remedy)
{
	if (remedy->package.len)
		json_member_string(json, "package", strbuf_slice(&remedy->package));
	if (remedy->command.len)
		json_member_string(json, "install", strbuf_slice(&remedy->command));
	strbuf_free(&remedy->package);
	strbuf_free(&remedy->command);
}

/* `remedy` may be NULL. */
static void put_json_missing(struct json *json, const struct resolver_missing *missing,
			     struct distribution_remedy *remedy)
{
	struct strbuf command = { 0 };

	json_open_object(json);
	json_member_uint(json, "cost_ns", missing->cost_ns);
	json_member_uint(json, "of_ns", missing->of_ns);
	json_member_string(json, "build_id", missing->build_id);
	json_member_string(json, "name", missing->path);
	json_member_text(json, "code", resolve_reason_code(missing->reason));
	json_member_text(json, "reason", resolve_reason_text(missing->reason));
	if (missing->detail.len) {
		json_member_string(json, "detail", missing->detail);
	}
	put_command(&command, missing);
	if (command.len) {
		json_member_string(json, "command", strbuf_slice(&command));
	}
	strbuf_free(&command);
	if (remedy)
		put_remedy(json, remedy);
	json_close_object(json);
}

/* The servers on offer, and the answer to the offer. */
static void put_offer(struct serve *serve, struct json *json)
{
	struct slice servers;
	enum debuginfo_consent consent = debuginfo_get_consent(serve->debuginfo, &servers);

	json_put_key(json, "offer");
	json_open_object(json);
	json_member_text(json, "consent", debuginfo_consent_name(consent));
	json_member_array(json, "servers");
	while (servers.len)
		json_put_string(json, slice_cut(servers, ' ', &servers));
	json_close_array(json);
	json_close_object(json);
}

static void put_missing(struct serve *serve, struct json *json, const struct missing_list *list)
{
	struct distribution_remedy remedies[REMEDIES_MAX];
	size_t count = find_remedies(serve, list, remedies);

	for (size_t i = 0; i < list->count; i++) {
		struct resolver_missing missing = missing_of(&list->items[i]);

		put_json_missing(json, &missing, i < count ? &remedies[i] : NULL);
	}
}

static void put_json(struct serve *serve, const struct slice *tenant, struct strbuf *out)
{
	struct missing_list list = find_missing(serve);
	struct json json;
	struct listing listing = { &json, tenant };

	json_begin(&json, out);
	json_open_object(&json);
	put_offer(serve, &json);
	json_member_array(&json, "files");
	debuginfo_each(serve->debuginfo, put_json_file, &listing);
	json_close_array(&json);
	json_member_array(&json, "coming");
	if (!is_other(tenant))
		debuginfo_each_coming(serve->debuginfo, put_json_coming, &json);
	json_close_array(&json);
	json_member_array(&json, "debuginfod");
	if (!is_other(tenant))
		debuginfo_each_asked(serve->debuginfo, (struct slice){ 0 }, put_json_asked, &json);
	json_close_array(&json);
	json_member_array(&json, "missing");
	if (!is_other(tenant))
		put_missing(serve, &json, &list);
	json_close_array(&json);
	json_close_object(&json);
	free_missing(&list);
}

static void put_time(struct strbuf *out, int64_t at_ns)
{
	time_t at = (time_t)(at_ns / CLOCK_NS_PER_S);
	char text[32] = "";
	struct tm utc;

	if (gmtime_r(&at, &utc))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
	strbuf_addf(out, "%-20s", text);
}

/* Build id, kind, state, from, bytes, time: what all lines begin with. */
static void put_text_start(struct strbuf *out, struct slice build_id, const char *kind,
			   const char *state, const char *from, uint64_t bytes, int64_t at_ns)
{
	strbuf_addf(out, "%-40.*s  %-7s  %-16s  %-10s  ", SLICE_FMT(build_id), kind, state, from);
	if (bytes)
		strbuf_addf(out, "%11llu  ", (unsigned long long)bytes);
	else
		strbuf_addf(out, "%11s  ", "-");
	if (at_ns)
		put_time(out, at_ns);
	else
		strbuf_addf(out, "%-20s", "-");
	strbuf_add_text(out, "  ");
}

static void put_text_file(void *context, const struct debuginfo_file *file)
{
	const struct debuginfo_record *record = file->record;
	bool has_quality = file->kind < DEBUGINFO_SOURCES;
	const struct listing *listing = context;
	struct strbuf *out = listing->out, sections = { 0 };

	if (!is_listed(listing, record))
		return;
	elf_sections_write(record->sections, &sections);
	put_text_start(out, file->build_id, kind_name(file->kind),
		       has_quality ? elf_quality_name(record->quality) : "here",
		       debuginfo_origin_name(record->origin), record->bytes, file->used_at_ns);
	printable_add(out, slice_of(record->name[0] ? record->name : "-"));
	strbuf_addf(out, "  %s\n", strbuf_text(&sections));
	strbuf_free(&sections);
}

static void put_text_coming(void *context, const struct debuginfo_coming *coming)
{
	put_text_start(context, coming->build_id, "-", coming->state, "-", coming->bytes, 0);
	strbuf_addf(context, "%llu bytes came before\n", (unsigned long long)coming->received);
}

static void put_text_asked(void *context, const struct debuginfo_asked *asked)
{
	if (!strcmp(asked->state, "here"))
		return; /* it is among the files */
	put_text_start(context, asked->build_id, "-", asked->state, "debuginfod", 0, asked->at_ns);
	printable_add(context, asked->why);
	strbuf_add_byte(context, '\n');
}

static void put_text_missing(void *context, const struct resolver_missing *missing)
{
	struct strbuf command = { 0 }, line = { 0 };

	put_command(&command, missing);
	put_text_start(context, missing->build_id, "-", "missing", "-", 0, 0);
	strbuf_addf(&line, "%.*s  %s%s%.*s%s%s%s", SLICE_FMT(missing->path),
		    resolve_reason_text(missing->reason), missing->detail.len ? ": " : "",
		    SLICE_FMT(missing->detail), command.len ? ": run `" : "", strbuf_text(&command),
		    command.len ? "`" : "");
	printable_add(context, strbuf_slice(&line));
	strbuf_add_byte(context, '\n');
	strbuf_free(&command);
	strbuf_free(&line);
}

static void put_text_offer(struct serve *serve, struct strbuf *out)
{
	struct slice servers;
	enum debuginfo_consent consent = debuginfo_get_consent(serve->debuginfo, &servers);

	if (consent != DEBUGINFO_UNANSWERED && consent != DEBUGINFO_REFUSED)
		return;
	strbuf_addf(out,
		    "%.*s may have the missing files (%s; it would learn the build ids): "
		    "`firn debuginfo fetch yes`\n",
		    SLICE_FMT(servers),
		    consent == DEBUGINFO_REFUSED ? "refused" : "nobody has answered yet");
}

static void put_text(struct serve *serve, const struct slice *tenant, struct strbuf *out)
{
	struct listing listing = { out, tenant };
	struct missing_list list;

	strbuf_addf(out, "%-40s  %-7s  %-16s  %-10s  %11s  %-20s  %s\n", "build id", "kind",
		    "quality", "from", "bytes", "last use", "name, what is in it");
	debuginfo_each(serve->debuginfo, put_text_file, &listing);
	if (is_other(tenant))
		return;
	debuginfo_each_coming(serve->debuginfo, put_text_coming, out);
	debuginfo_each_asked(serve->debuginfo, (struct slice){ 0 }, put_text_asked, out);
	list = find_missing(serve);
	for (size_t i = 0; i < list.count; i++) {
		struct resolver_missing missing = missing_of(&list.items[i]);

		put_text_missing(out, &missing);
	}
	free_missing(&list);
	put_text_offer(serve, out);
}

void answer_debuginfo(void *context, const struct net_request *request,
		      struct net_response *response)
{
	struct serve *serve = context;
	struct strbuf format = { 0 };
	const struct slice *whose;
	struct slice tenant;
	struct err err;

	if (tenant_of(serve, request, &tenant, &err)) {
		net_response_error(request, response, &err);
		return;
	}
	whose = serve->tenants ? &tenant : NULL;
	if (net_request_parameter(request, "format", 0, &format) &&
	    slice_is(strbuf_slice(&format), "text")) {
		response->content_type = "text/plain; charset=utf-8";
		put_text(serve, whose, &response->body);
	} else {
		response->content_type = "application/json";
		put_json(serve, whose, &response->body);
	}
	strbuf_free(&format);
}

struct progress {
	uint64_t waiting, fetching, here, not_there, failed;
};

static void count_asked(void *context, const struct debuginfo_asked *asked)
{
	struct progress *progress = context;

	progress->waiting += !strcmp(asked->state, "waiting");
	progress->fetching += !strcmp(asked->state, "fetching");
	progress->here += !strcmp(asked->state, "here");
	progress->not_there += !strcmp(asked->state, "not there");
	progress->failed += !strcmp(asked->state, "failed");
}

/* The offer, and how far what was asked for is. */
static void put_consent(struct serve *serve, struct net_response *response)
{
	struct progress progress = { 0 };
	struct json json;

	debuginfo_each_asked(serve->debuginfo, (struct slice){ 0 }, count_asked, &progress);
	response->content_type = "application/json";
	json_begin(&json, &response->body);
	json_open_object(&json);
	put_offer(serve, &json);
	json_put_key(&json, "progress");
	json_open_object(&json);
	json_member_uint(&json, "waiting", progress.waiting);
	json_member_uint(&json, "fetching", progress.fetching);
	json_member_uint(&json, "here", progress.here);
	json_member_uint(&json, "not_there", progress.not_there);
	json_member_uint(&json, "failed", progress.failed);
	json_close_object(&json);
	json_close_object(&json);
}

/* GET: the answer that is in force. */
void answer_consent_get(void *context, const struct net_request *request,
			struct net_response *response)
{
	(void)request;
	put_consent(context, response);
}

/* POST: whether the servers that are offered may be asked. */
void answer_consent(void *context, const struct net_request *request, struct net_response *response)
{
	struct serve *serve = context;
	struct strbuf answer = { 0 };
	struct err err;
	int rc = 0;
	bool consents;

	net_request_parameter(request, "answer", 0, &answer);
	consents = slice_is(strbuf_slice(&answer), "yes");
	if (!consents && !slice_is(strbuf_slice(&answer), "no"))
		rc = err_set(&err, ERR_INVALID, "parameter \"answer\": expected yes or no");
	if (!rc)
		rc = debuginfo_answer(serve->debuginfo, consents, &err);
	strbuf_free(&answer);
	if (rc)
		net_response_error(request, response, &err);
	else
		put_consent(serve, response);
}

/*
 * The reader of this host's files, when the request comes from the user whose rights it has: by a
 * connection of a process of his on this host, and by no proxy, which would ask for others.
 */
static struct local_source *local_source_for(struct serve *serve, const struct net_request *request)
{
	static const char *const of_proxies[] = { "forwarded", "via", "x-forwarded-for",
						  "x-forwarded-host", "x-real-ip" };
	uid_t uid;

	if (!serve->local_source)
		return NULL;
	for (size_t i = 0; i < sizeof(of_proxies) / sizeof(*of_proxies); i++)
		if (net_request_header(request, of_proxies[i]).len)
			return NULL;
	return peer_user_find(request->peer, atomic_load(&serve->port), &uid) &&
			       uid == serve->local_source_uid
		       ? serve->local_source
		       : NULL;
}

void answer_source(void *context, const struct net_request *request, struct net_response *response)
{
	struct strbuf build_id = { 0 }, file = { 0 };
	struct serve *serve = context;
	struct source_wanted wanted;
	struct slice tenant;
	const char *from;
	struct err err;

	net_request_parameter(request, "build_id", 0, &build_id);
	net_request_parameter(request, "file", 0, &file);
	response->content_type = "text/plain; charset=utf-8";
	wanted = (struct source_wanted){ strbuf_slice(&build_id), strbuf_slice(&file),
					 serve->tenants ? &tenant : NULL,
					 local_source_for(serve, request),
					 clock_monotonic_ns() + SOURCE_PATIENCE_NS };
	if (tenant_of(serve, request, &tenant, &err) ||
	    source_find(serve->debuginfo, &wanted, &response->body, &from, &err)) {
		strbuf_clear(&response->body);
		net_response_error(request, response, &err);
	} else { /* whatever is in it, a browser is to show it and do nothing else */
		strbuf_addf(&response->headers,
			    "firn-source: %s\r\nx-content-type-options: nosniff\r\n"
			    "content-security-policy: sandbox\r\n",
			    from);
	}
	strbuf_free(&build_id);
	strbuf_free(&file);
}

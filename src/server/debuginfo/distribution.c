/* SPDX-License-Identifier: Apache-2.0 */
#include "server/debuginfo/distribution.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/whole_file.h"
#include "codec/wire/shell_word.h"

#define FILE_BYTES_MAX ((size_t)4 << 20)
#define FILES_MAX 65536u
#define FIELD_BYTES 64u
#define PATH_BYTES 4096u

/* What of /etc/os-release tells. */
struct release {
	char id[FIELD_BYTES];
	char like[2 * FIELD_BYTES];
	char codename[FIELD_BYTES];
};

/* https://sourceware.org/elfutils/Debuginfod.html lists them. */
static const struct {
	const char *id, *server;
} servers[] = {
	{ "debian", "https://debuginfod.debian.net" },
	{ "ubuntu", "https://debuginfod.ubuntu.com" },
	{ "fedora", "https://debuginfod.fedoraproject.org" },
	{ "centos", "https://debuginfod.centos.org" },
	{ "arch", "https://debuginfod.archlinux.org" },
	{ "opensuse", "https://debuginfod.opensuse.org" },
	{ "suse", "https://debuginfod.opensuse.org" },
	{ "void", "https://debuginfod.s.voidlinux.org" },
	{ "artix", "https://debuginfod.artixlinux.org" },
};

static bool read_whole(const char *root, const char *path, struct strbuf *out)
{
	char whole[PATH_BYTES];

	strbuf_clear(out);
	return snprintf(whole, sizeof(whole), "%s%s", root, path) < (int)sizeof(whole) &&
	       !whole_file_read(whole, FILE_BYTES_MAX, out, NULL);
}

/* The value of NAME="value", without quotes; what does not fit is cut. */
static void take_field(struct slice line, const char *name, char *ret, size_t ret_bytes)
{
	struct slice value, key = slice_cut(line, '=', &value);

	if (!slice_is(key, name))
		return;
	if (value.len > 1 && (value.data[0] == '"' || value.data[0] == '\''))
		value = slice_from(value.data + 1, value.len - 2);
	snprintf(ret, ret_bytes, "%.*s", SLICE_FMT(value));
}

static void read_release(const char *root, struct release *ret)
{
	struct strbuf text = { 0 };
	struct slice rest;

	*ret = (struct release){ .id = "" };
	if (read_whole(root, "/etc/os-release", &text) ||
	    read_whole(root, "/usr/lib/os-release", &text)) {
		for (rest = strbuf_slice(&text); rest.len;) {
			struct slice line = slice_cut(rest, '\n', &rest);

			take_field(line, "ID", ret->id, sizeof(ret->id));
			take_field(line, "ID_LIKE", ret->like, sizeof(ret->like));
			take_field(line, "VERSION_CODENAME", ret->codename, sizeof(ret->codename));
		}
	}
	strbuf_free(&text);
}

/* Whether the distribution is that one, or says that it is like it. */
static bool is_like(const struct release *release, const char *id)
{
	struct slice rest = slice_of(release->like);

	if (!strcmp(release->id, id) || slice_starts_with(slice_of(release->id), slice_of(id)))
		return true;
	while (rest.len)
		if (slice_is(slice_cut(rest, ' ', &rest), id))
			return true;
	return false;
}

/* The addresses in a text; other words, as "ima:enforcing", are left out. */
static void add_addresses(struct slice text, struct strbuf *out)
{
	while (text.len) {
		struct slice line = slice_cut(text, '\n', &text);

		while (line.len) {
			struct slice word = slice_cut(line, ' ', &line);

			if (!slice_starts_with(word, SLICE_LITERAL("http://")) &&
			    !slice_starts_with(word, SLICE_LITERAL("https://")))
				continue;
			if (out->len)
				strbuf_add_byte(out, ' ');
			strbuf_add_slice(out, word);
		}
	}
}

static int is_urls(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len > 5 && !strcmp(entry->d_name + len - 5, ".urls");
}

static void add_configured(const char *root, struct strbuf *out)
{
	char path[PATH_BYTES];
	struct strbuf text = { 0 };
	struct dirent **entries = NULL;
	int count;

	snprintf(path, sizeof(path), "%s/etc/debuginfod", root);
	count = scandir(path, &entries, is_urls, alphasort);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "/etc/debuginfod/%s", entries[i]->d_name);
		if (read_whole(root, path, &text))
			add_addresses(strbuf_slice(&text), out);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	strbuf_free(&text);
}

void distribution_servers(const char *root, struct strbuf *out)
{
	size_t before = out->len;
	struct release release;

	add_configured(root, out);
	if (out->len > before)
		return;
	read_release(root, &release);
	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
		if (!is_like(&release, servers[i].id))
			continue;
		strbuf_add_text(out, servers[i].server);
		return;
	}
}

static bool is_askable(struct slice path)
{
	return path.len && path.data[0] == '/' && slice_find_byte(path, '\n') == SIZE_MAX;
}

static bool has_line(struct slice text, struct slice wanted)
{
	while (text.len)
		if (slice_equal(slice_cut(text, '\n', &text), wanted))
			return true;
	return false;
}

/* Whether the files of a package are its list, "libc6:amd64.list". */
static bool is_list(const char *name, struct slice *ret_package)
{
	const struct slice end = SLICE_LITERAL(".list");
	struct slice rest;
	size_t len = strlen(name);

	if (len <= end.len || strcmp(name + len - end.len, end.data) != 0)
		return false;
	*ret_package = slice_cut(slice_from(name, len - end.len), ':', &rest);
	return true;
}

/* A list has paths with or without the "/usr" that folders were merged into. */
static bool has_path(struct slice list, struct slice path)
{
	const struct slice usr = SLICE_LITERAL("/usr");

	return has_line(list, path) || (slice_starts_with(path, SLICE_LITERAL("/usr/")) &&
					has_line(list, slice_tail(path, usr.len)));
}

/* Notes the package for those of its files that have none yet; returns how many. */
static size_t note_owner(struct slice package, struct slice list,
			 struct distribution_remedy *remedies, size_t count)
{
	size_t noted = 0;

	for (size_t i = 0; i < count; i++) {
		struct distribution_remedy *remedy = &remedies[i];

		if (remedy->package.len || !is_askable(remedy->path) ||
		    !has_path(list, remedy->path))
			continue;
		strbuf_add_slice(&remedy->package, package);
		noted++;
	}
	return noted;
}

/* The packages whose lists have the paths: all lists are read once, whatever number of paths. */
static void find_owners(const char *root, struct distribution_remedy *remedies, size_t count)
{
	struct strbuf text = { 0 };
	char name[PATH_BYTES];
	const struct dirent *entry;
	size_t noted = 0;
	DIR *folder;

	snprintf(name, sizeof(name), "%s/var/lib/dpkg/info", root);
	folder = opendir(name);
	for (unsigned i = 0; folder && noted < count && i < FILES_MAX && (entry = readdir(folder));
	     i++) {
		struct slice package;

		if (!is_list(entry->d_name, &package) || !package.len)
			continue;
		snprintf(name, sizeof(name), "/var/lib/dpkg/info/%s", entry->d_name);
		if (read_whole(root, name, &text))
			noted += note_owner(package, strbuf_slice(&text), remedies, count);
	}
	if (folder)
		closedir(folder);
	strbuf_free(&text);
}

static int is_debug_list(const struct dirent *entry)
{
	return strstr(entry->d_name, "debug") && strstr(entry->d_name, "_Packages");
}

/* Whether packages of debug information can be installed as they are. */
static bool has_debug_archive(const char *root)
{
	char path[PATH_BYTES];
	struct dirent **entries = NULL;
	int count;

	snprintf(path, sizeof(path), "%s/var/lib/apt/lists", root);
	count = scandir(path, &entries, is_debug_list, alphasort);
	for (int i = 0; i < count; i++)
		free(entries[i]);
	if (count >= 0)
		free(entries);
	return count > 0;
}

static bool is_plain(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!text.data[i] ||
		    !strchr("+-.0123456789abcdefghijklmnopqrstuvwxyz", text.data[i]))
			return false;
	return text.len;
}

/* Debian's C library alone has a package of debug information in the archive of all. */
static void add_apt(const char *root, const struct release *release, struct slice package,
		    struct strbuf *command)
{
	bool is_ubuntu = is_like(release, "ubuntu");

	if (slice_is(package, "libc6")) {
		strbuf_add_text(command, "sudo apt-get install -y libc6-dbg");
		return;
	}
	if (!has_debug_archive(root) && is_plain(slice_of(release->codename))) {
		if (is_ubuntu)
			strbuf_add_text(command,
					"sudo apt-get install -y ubuntu-dbgsym-keyring && ");
		strbuf_addf(command,
			    "echo 'deb %s %s%s main%s' | sudo tee "
			    "/etc/apt/sources.list.d/debug-symbols.list && sudo apt-get update && ",
			    is_ubuntu ? "http://ddebs.ubuntu.com"
				      : "http://deb.debian.org/debian-debug",
			    release->codename, is_ubuntu ? "" : "-debug",
			    is_ubuntu ? " universe" : "");
	}
	strbuf_addf(command, "sudo apt-get install -y %.*s-dbgsym", SLICE_FMT(package));
}

static void remedy_by_apt(const char *root, const struct release *release,
			  struct distribution_remedy *remedies, size_t count)
{
	find_owners(root, remedies, count);
	for (size_t i = 0; i < count; i++) {
		struct strbuf *package = &remedies[i].package;

		if (is_plain(strbuf_slice(package)))
			add_apt(root, release, strbuf_slice(package), &remedies[i].command);
		else
			strbuf_clear(package);
	}
}

/* `command` is what asks rpm for the package, up to the path. */
static void remedy_by_rpm(const char *command, struct distribution_remedy *remedies, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!is_askable(remedies[i].path))
			continue;
		strbuf_add_text(&remedies[i].command, command);
		shell_word_add(remedies[i].path, &remedies[i].command);
		strbuf_add_text(&remedies[i].command, ")\"");
	}
}

void distribution_remedies(const char *root, struct distribution_remedy *remedies, size_t count)
{
	struct release release;

	read_release(root, &release);
	if (is_like(&release, "debian") || is_like(&release, "ubuntu"))
		remedy_by_apt(root, &release, remedies, count);
	else if (is_like(&release, "fedora") || is_like(&release, "rhel") ||
		 is_like(&release, "centos"))
		remedy_by_rpm("sudo dnf debuginfo-install -y \"$(rpm -qf --qf '%{NAME}' -- ",
			      remedies, count);
	else if (is_like(&release, "suse") || is_like(&release, "opensuse"))
		remedy_by_rpm("sudo zypper --plus-content debug install -y \"$(rpm -qf "
			      "--qf '%{NAME}-debuginfo' -- ",
			      remedies, count);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolve_bench - symbol tables beside llvm-symbolizer and addr2line.
 *
 *     resolve_bench [FILE [ADDRESSES [WARM [TABLE]]]]
 *
 * FILE is an ELF file with DWARF (default: the debug file of libc, package libc6-dbg, or else this
 * program); ADDRESSES (default 10000) are drawn at random from its .text with a fixed seed, and the
 * same list goes to all. Prints the time for all of them from a cold start, ours split into
 * building and looking up, the ratio to ours, and how many answers agree: the number of frames, the
 * innermost function, and all files (by base name) and lines. Clones' suffixes ("f.cold") are cut.
 *
 * Then WARM (default 2 million) further addresses are looked up in the table itself, at random and
 * sorted, for frames (numbers) and for frames with names: CPU time of one core. TABLE is a table of
 * FILE that `firn symbolize --tables-path` has made, instead of making one.
 */
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "server/resolve/read/debug_files.h"
#include "server/resolve/sources/symbol_sources.h"
#include "server/resolve/table/symbol_texts.h"
#include "server/resolve/worker/symbol_worker.h"

#define ADDRESSES_DEFAULT 10000
#define WARM_DEFAULT 2000000
#define LIBC "/lib/x86_64-linux-gnu/libc.so.6"
#define FRAMES_MAX 64

/* One answer: what is compared of its frames. */
struct answer {
	size_t frames;
	char function[128]; /* innermost */
	char places[1024];  /* "file:line file:line" */
};

static void add_frame(struct answer *answer, struct slice name, struct slice file, const char *line)
{
	struct slice rest, short_name = slice_cut(name, '.', &rest);
	size_t used = strlen(answer->places), from = file.len;

	while (from && file.data[from - 1] != '/')
		from--;
	if (!answer->frames)
		snprintf(answer->function, sizeof(answer->function), "%.*s", SLICE_FMT(short_name));
	snprintf(answer->places + used, sizeof(answer->places) - used, "%.*s:%s ",
		 SLICE_FMT(slice_tail(file, from)), line);
	answer->frames++;
}

static void answer_ours(struct symbol_texts *texts, uint64_t address, struct answer *ret)
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	size_t count = symbol_texts_lookup(texts, address, lines);

	*ret = (struct answer){ 0 };
	for (size_t i = 0; i < count; i++) {
		char line[16];

		snprintf(line, sizeof(line), "%u", lines[i].line);
		add_frame(ret, lines[i].linkage_name.len ? lines[i].linkage_name : lines[i].name,
			  lines[i].file.len ? lines[i].file : slice_of("??"), line);
	}
	if (!count)
		add_frame(ret, slice_of("??"), slice_of("??"), "0");
}

/* Reads (function, file:line) pairs until an empty line or an address that starts the next. */
static bool answer_peer(FILE *peer, char separator, struct answer *ret)
{
	char name[65536], place[65536];

	*ret = (struct answer){ 0 };
	while (fgets(name, sizeof(name), peer)) {
		struct slice line, file;

		name[strcspn(name, "\n")] = 0;
		if (!*name || *name == separator)
			return true;
		if (!fgets(place, sizeof(place), peer))
			return false;
		place[strcspn(place, "\n")] = 0;
		file = slice_cut(slice_of(place), ':', &line);
		place[file.len] = 0;
		add_frame(ret, slice_of(name), file,
			  line.len ? strtok(place + file.len + 1, ": ") : "0");
		if (!strcmp(strrchr(ret->places, ' ') - 1, "? "))
			*strrchr(ret->places, '?') = '0'; /* addr2line's "file:?" */
	}
	return ret->frames > 0;
}

static bool find_text(int fd, uint64_t *ret_low, uint64_t *ret_len)
{
	Elf *elf = (elf_version(EV_CURRENT), elf_begin(fd, ELF_C_READ, NULL));
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	bool found = false;
	size_t names;

	if (elf && !elf_getshdrstrndx(elf, &names)) {
		while (!found && (section = elf_nextscn(elf, section)) &&
		       gelf_getshdr(section, &header))
			found = !strcmp(elf_strptr(elf, names, header.sh_name), ".text");
		*ret_low = header.sh_addr;
		*ret_len = header.sh_size;
	}
	elf_end(elf);
	return found;
}

static int open_default(const char **ret_name, char link[64])
{
	struct elf_info info;
	int libc = open(LIBC, O_RDONLY | O_CLOEXEC);
	int fd = -1;

	if (libc >= 0 && !elf_read_info(libc, LIBC, &info, NULL))
		fd = debug_files_open_by_id(NULL, slice_of(info.build_id), NULL);
	if (libc >= 0)
		close(libc);
	if (fd < 0)
		fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	snprintf(link, 64, "/proc/%d/fd/%d", getpid(), fd);
	*ret_name = link;
	return fd;
}

static void print_row(const char *name, int64_t ns, int64_t ours_ns, size_t count)
{
	printf("%-18s %8.3f s %8.2f us/address %6.1fx", name, (double)ns / 1e9,
	       (double)ns / 1e3 / (double)count, (double)ns / (double)ours_ns);
}

static void run_peer(const char *name, const char *command, char separator,
		     const struct answer *ours, size_t count, int64_t ours_ns)
{
	size_t frames = 0, functions = 0, places = 0, answers = 0;
	int64_t start_ns = clock_monotonic_ns();
	struct answer answer;
	FILE *peer = popen(command, "r");

	if (peer && separator) /* the first address starts no new answer */
		answer_peer(peer, separator, &answer);
	while (peer && answers < count && answer_peer(peer, separator, &answer)) {
		frames += answer.frames == ours[answers].frames;
		functions += !strcmp(answer.function, ours[answers].function);
		places += !strcmp(answer.places, ours[answers].places);
		answers++;
	}
	if (peer)
		pclose(peer);
	if (answers < count) {
		printf("%-18s did not run\n", name);
		return;
	}
	print_row(name, clock_monotonic_ns() - start_ns, ours_ns, count);
	printf("   agree: frames %.2f%%, function %.2f%%, lines %.2f%%\n",
	       100.0 * (double)frames / (double)count, 100.0 * (double)functions / (double)count,
	       100.0 * (double)places / (double)count);
}

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

static uint64_t draw(unsigned *seed, uint64_t low, uint64_t len)
{
	return low + ((uint64_t)rand_r(seed) << 16 ^ (uint64_t)rand_r(seed)) % len;
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void print_rate(const char *what, const char *order, int64_t ns, size_t count,
		       uint64_t frames)
{
	printf("%-24s %-10s %7.2f M addresses/s, %5.2f frames each\n", what, order,
	       (double)count * 1e3 / (double)ns, (double)frames / (double)count);
}

static void count_frames(void *context, size_t index, const struct symbol_frame *frames,
			 size_t count)
{
	(void)index;
	(void)frames;
	*(uint64_t *)context += count;
}

/* Each twice; the second counts. */
static void run_warm(const struct symbol_table *table, struct symbol_texts *texts,
		     const uint64_t *addresses, size_t count, const char *order)
{
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	uint64_t found = 0;
	int64_t start_ns = 0;

	for (int round = 0; round < 2; round++) {
		start_ns = cpu_ns();
		found = 0;
		for (size_t i = 0; i < count; i++)
			found += symbol_lookup(table, addresses[i], frames);
	}
	print_rate("frames", order, cpu_ns() - start_ns, count, found);
	for (int round = 0; round < 2; round++) {
		start_ns = cpu_ns();
		found = 0;
		symbol_lookup_many(table, addresses, count, count_frames, &found);
	}
	print_rate("frames of many at once", order, cpu_ns() - start_ns, count, found);
	for (int round = 0; round < 2; round++) {
		start_ns = cpu_ns();
		found = 0;
		for (size_t i = 0; i < count; i++)
			found += symbol_texts_lookup(texts, addresses[i], lines);
	}
	print_rate("frames with names", order, cpu_ns() - start_ns, count, found);
}

static void print_table(const struct symbol_table *table)
{
	struct symbol_table_stats stats = symbol_table_stats(table);

	printf("table of %.2f MB (%s): rows %.2f, %u scopes %.2f, %u functions %.2f, "
	       "%u texts %.2f\n",
	       (double)symbol_table_bytes(table) / 1e6, symbol_origin_text(table->origin),
	       (double)stats.row_bytes / 1e6, stats.scopes, (double)stats.scope_bytes / 1e6,
	       stats.functions, (double)stats.function_bytes / 1e6, stats.texts,
	       (double)stats.text_bytes / 1e6);
}

static struct symbol_table *build(int fd, const char *name)
{
	struct symbol_sources sources = { .count = 0 };
	struct symbol_table *table = NULL;
	struct err err = { 0 };

	symbol_sources_add(&sources, fd, slice_of(name));
	if (symbol_sources_table(&sources, NULL, &table, &err))
		fprintf(stderr, "resolve_bench: %s\n", err.message);
	symbol_sources_close(&sources);
	return table;
}

static struct symbol_table *open_table(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct symbol_table *table = NULL;
	struct err err = { 0 };

	if (fd < 0 || symbol_table_open(fd, path, &table, &err))
		fprintf(stderr, "resolve_bench: %s: %s\n", path, err.message);
	if (fd >= 0)
		close(fd);
	return table;
}

static void run_peers(const char *name, const char *list, const struct answer *ours, size_t count,
		      int64_t ours_ns)
{
	char command[8192];

	snprintf(command, sizeof(command), "llvm-symbolizer-14 --no-demangle --inlines -e '%s' <%s",
		 name, list);
	run_peer("llvm-symbolizer", command, 0, ours, count, ours_ns);
	snprintf(command, sizeof(command), "addr2line -aif -e '%s' <%s | sed 's/^0x.*/@/'", name,
		 list);
	run_peer("addr2line", command, '@', ours, count, ours_ns);
}

static int run(int argc, char **argv)
{
	size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : ADDRESSES_DEFAULT;
	size_t warm = argc > 3 ? strtoul(argv[3], NULL, 10) : WARM_DEFAULT;
	char link[64], list[] = "/tmp/resolve-bench-XXXXXX";
	const char *name = argc > 1 ? argv[1] : NULL;
	int64_t start_ns, built_ns, done_ns;
	struct answer *ours = mem_new_array(struct answer, count);
	uint64_t *addresses = mem_new_array(uint64_t, count + warm), low, len;
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	struct symbol_table *table;
	struct symbol_texts *texts;
	unsigned seed = 7;
	FILE *file;
	int fd;

	fd = name ? open(name, O_RDONLY | O_CLOEXEC) : open_default(&name, link);
	file = fdopen(mkstemp(list), "w");
	if (!count || !file || fd < 0 || !find_text(fd, &low, &len)) {
		fprintf(stderr, "resolve_bench: no ELF file with a .text section: %s\n", name);
		return 2;
	}
	for (size_t i = 0; i < count; i++) {
		addresses[i] = draw(&seed, low, len);
		fprintf(file, "0x%" PRIx64 "\n", addresses[i]);
	}
	fclose(file);
	start_ns = clock_monotonic_ns();
	table = argc > 4 ? open_table(argv[4]) : build(fcntl(fd, F_DUPFD_CLOEXEC, 0), name);
	if (!table)
		return 2;
	built_ns = clock_monotonic_ns();
	for (size_t i = 0; i < count; i++)
		symbol_lookup(table, addresses[i], frames);
	done_ns = clock_monotonic_ns();
	texts = symbol_texts_new(table);
	for (size_t i = 0; i < count; i++)
		answer_ours(texts, addresses[i], &ours[i]);
	print_table(table);
	print_row("firn", done_ns - start_ns, done_ns - start_ns, count);
	printf("   building %.3f s, then %.2f us/address\n", (double)(built_ns - start_ns) / 1e9,
	       (double)(done_ns - built_ns) / 1e3 / (double)count);
	for (size_t i = 0; i < warm; i++)
		addresses[i] = draw(&seed, low, len);
	run_warm(table, texts, addresses, warm, "at random");
	qsort(addresses, warm, sizeof(*addresses), compare_addresses);
	run_warm(table, texts, addresses, warm, "sorted");
	run_peers(name, list, ours, count, done_ns - start_ns);
	unlink(list);
	close(fd);
	symbol_texts_free(texts);
	symbol_table_free(table);
	free(ours);
	free(addresses);
	return 0;
}

int main(int argc, char **argv)
{
	int worker = symbol_worker_main(argc, argv);

	return worker >= 0 ? worker : run(argc, argv);
}

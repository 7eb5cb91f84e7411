/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/table_chunks.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

void table_chunks_init(struct table_chunks *chunks, int outer_fd, int first_fd, uint64_t max_bytes)
{
	uint64_t max = max_bytes / TABLE_CHUNK_BYTES;

	*chunks = (struct table_chunks){ .outer_fd = outer_fd, .first_fd = first_fd };
	chunks->max = max > TABLE_CHUNKS_MAX ? TABLE_CHUNKS_MAX : (uint32_t)max;
	if (!chunks->max)
		chunks->max = 1;
}

void table_chunks_fini(struct table_chunks *chunks)
{
	for (uint32_t i = 0; i < chunks->count; i++) {
		close(chunks->chunks[i]->fd);
		free(chunks->chunks[i]);
	}
	chunks->count = 0;
}

static int make_chunk(int outer_fd, uint32_t index, int *ret_fd, struct err *err)
{
	struct bpf_map_create_opts options = { .sz = sizeof(options), .map_flags = BPF_F_MMAPABLE };
	int code, fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "firn_chunk", sizeof(uint32_t),
				      TABLE_CHUNK_BYTES, 1, &options);

	assert(index < TABLE_CHUNKS_MAX);
	if (fd < 0)
		return err_set_errno(err, errno, "make a chunk for unwind tables");
	if (bpf_map_update_elem(outer_fd, &index, &fd, BPF_ANY)) {
		code = err_set_errno(err, errno, "add a chunk for unwind tables");
		close(fd);
		return code;
	}
	*ret_fd = fd;
	return 0;
}

/* The first one comes with the BPF program. */
static int take_first_chunk(int first_fd, int *ret_fd, struct err *err)
{
	int fd = fcntl(first_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return err_set_errno(err, errno, "take the first chunk for unwind tables");
	*ret_fd = fd;
	return 0;
}

int table_chunks_add(struct table_chunks *chunks, struct err *err)
{
	uint32_t index = chunks->count;
	int code, fd = -1;

	assert(chunks->max <= TABLE_CHUNKS_MAX);
	assert(chunks->count <= chunks->max);
	if (index >= chunks->max)
		return err_set(err, ERR_LIMIT, "add a chunk for unwind tables: %u is the most",
			       chunks->max);
	if (index == 0 && chunks->first_fd >= 0)
		code = take_first_chunk(chunks->first_fd, &fd, err);
	else
		code = make_chunk(chunks->outer_fd, index, &fd, err);
	if (code)
		return code;
	chunks->chunks[index] = mem_new(struct table_chunk);
	chunks->chunks[index]->fd = fd;
	chunks->count++;
	return 0;
}

bool table_chunks_find_free(const struct table_chunks *chunks, uint32_t pages,
			    struct table_place *ret)
{
	assert(chunks->count <= chunks->max);
	for (uint32_t i = 0; i < chunks->count; i++) {
		const uint32_t *owners = chunks->chunks[i]->owners;
		uint32_t run = 0;

		for (uint32_t page = 0; page < TABLE_CHUNK_PAGES; page++) {
			run = owners[page] == TABLE_OWNER_NONE ? run + 1 : 0;
			if (run < pages)
				continue;
			*ret = (struct table_place){ i, page + 1 - pages, pages };
			return true;
		}
	}
	return false;
}

/* When the pages from `first` on were last used; INT64_MAX when one of them has to stay. */
static int64_t last_use(const uint32_t *owners, uint32_t pages, const int64_t *used_at_ns)
{
	int64_t last_ns = INT64_MIN;

	for (uint32_t i = 0; i < pages; i++)
		if (owners[i] != TABLE_OWNER_NONE && used_at_ns[owners[i]] > last_ns)
			last_ns = used_at_ns[owners[i]];
	return last_ns;
}

bool table_chunks_find_used(const struct table_chunks *chunks, uint32_t pages,
			    const int64_t *used_at_ns, struct table_place *ret)
{
	int64_t best_ns = INT64_MAX;

	assert(chunks->count <= chunks->max);
	for (uint32_t i = 0; i < chunks->count; i++) {
		const uint32_t *owners = chunks->chunks[i]->owners;

		for (uint32_t page = 0; page + pages <= TABLE_CHUNK_PAGES; page++) {
			int64_t use_ns = last_use(owners + page, pages, used_at_ns);

			if (use_ns >= best_ns)
				continue;
			best_ns = use_ns;
			*ret = (struct table_place){ i, page, pages };
		}
	}
	return best_ns < INT64_MAX;
}

uint64_t table_chunks_pages_to_be_had(const struct table_chunks *chunks, const int64_t *used_at_ns)
{
	uint64_t pages = (uint64_t)(chunks->max - chunks->count) * TABLE_CHUNK_PAGES;

	assert(chunks->count <= chunks->max);
	for (uint32_t i = 0; i < chunks->count; i++) {
		const uint32_t *owners = chunks->chunks[i]->owners;

		for (uint32_t page = 0; page < TABLE_CHUNK_PAGES; page++)
			pages += owners[page] == TABLE_OWNER_NONE ||
				 (used_at_ns && used_at_ns[owners[page]] < INT64_MAX);
	}
	return pages;
}

void table_chunks_take(struct table_chunks *chunks, const struct table_place *place, uint32_t owner)
{
	uint32_t *owners = chunks->chunks[place->chunk]->owners + place->page;

	assert(place->chunk < chunks->count);
	assert(place->page + place->pages <= TABLE_CHUNK_PAGES);
	assert(owner != TABLE_OWNER_NONE);
	for (uint32_t i = 0; i < place->pages; i++) {
		assert(owners[i] == TABLE_OWNER_NONE);
		owners[i] = owner;
	}
}

uint32_t table_chunks_owner(const struct table_chunks *chunks, const struct table_place *place,
			    uint32_t page)
{
	assert(place->chunk < chunks->count);
	assert(page < place->pages && place->page + page < TABLE_CHUNK_PAGES);
	return chunks->chunks[place->chunk]->owners[place->page + page];
}

void table_chunks_release(struct table_chunks *chunks, uint32_t owner)
{
	for (uint32_t i = 0; i < chunks->count; i++)
		for (uint32_t page = 0; page < TABLE_CHUNK_PAGES; page++)
			if (chunks->chunks[i]->owners[page] == owner)
				chunks->chunks[i]->owners[page] = TABLE_OWNER_NONE;
}

int table_chunks_write(struct table_chunks *chunks, const struct table_place *place,
		       struct slice bytes, struct err *err)
{
	size_t room = (size_t)place->pages * TABLE_PAGE_BYTES;
	void *to;

	assert(place->chunk < chunks->count);
	assert(place->page + place->pages <= TABLE_CHUNK_PAGES);
	assert(bytes.len <= room);
	to = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, chunks->chunks[place->chunk]->fd,
		  (off_t)place->page * TABLE_PAGE_BYTES);
	if (to == MAP_FAILED)
		return err_set_errno(err, errno, "map a chunk of unwind tables");
	memcpy(to, bytes.data, bytes.len);
	munmap(to, room);
	return 0;
}

int table_chunks_wait_readers(struct table_chunks *chunks, struct err *err)
{
	uint32_t index = 0;

	assert(chunks->count <= chunks->max);
	if (!chunks->count)
		return 0;
	/*
	 * After an update of a map of maps the kernel waits for a grace period of RCU
	 * (maybe_wait_bpf_programs in kernel/bpf/syscall.c); this update changes nothing.
	 */
	if (bpf_map_update_elem(chunks->outer_fd, &index, &chunks->chunks[0]->fd, BPF_ANY))
		return err_set_errno(err, errno, "wait for readers of unwind tables");
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* syscalls - time in the kernel below a known user chain: a large read, random bytes, page faults.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "work.h"

static char bytes[1 << 20];

KEEP static void read_zeros(int fd)
{
	work_sink += (uint64_t)read(fd, bytes, sizeof(bytes));
}

KEEP static void random_bytes(void)
{
	work_sink += (uint64_t)getrandom(bytes, 1 << 18, 0);
}

KEEP static void touch(volatile char *page)
{
	*page = 1;
}

KEEP static void page_faults(void)
{
	char *fresh =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t at = 0; at < 1 << 20; at += 4096)
		touch(fresh + at);
	munmap(fresh, 1 << 20);
}

KEEP static void small_calls(void)
{
	for (int i = 0; i < 500; i++)
		work_sink += (uint64_t)getppid();
}

int main(int argc, char **argv)
{
	int fd = open("/dev/zero", O_RDONLY);

	work_begin(argc, argv);
	while (!over()) {
		read_zeros(fd);
		random_bytes();
		page_faults();
		small_calls();
	}
	return 0;
}

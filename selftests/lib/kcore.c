// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Owns the reading of /proc/kcore, kallsyms, pagemap and kpageflags; see kcore.h. */
#include <fcntl.h>
#include <linux/elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kcore.h"
#include "test.h"

/* x86-64: struct page is 64 bytes with its reference count behind 52 of them. */
#define PAGE_STRUCT	64
#define REFCOUNT	52

static uint64_t read_u64(const char *path, uint64_t index)
{
	uint64_t value = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		test_skip("cannot open %s", path);
	MUST(pread(fd, &value, 8, index * 8) == 8);
	close(fd);
	return value;
}

static uint64_t frame_of(const void *addr)
{
	uint64_t entry = read_u64("/proc/self/pagemap", (uintptr_t)addr / 4096);

	/* Present, and the number is shown to root only. */
	MUST(entry >> 63);
	entry &= (1ULL << 55) - 1;
	if (!entry)
		test_skip("/proc/self/pagemap shows no frame numbers");
	return entry;
}

static uint64_t symbol(const char *name)
{
	char line[256], found[128];
	unsigned long long addr = 0, at;
	FILE *f = fopen("/proc/kallsyms", "r");

	if (!f)
		test_skip("no /proc/kallsyms");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %*c %127s", &at, found) == 2 &&
		    !strcmp(found, name)) {
			addr = at;
			break;
		}
	fclose(f);
	if (!addr)
		test_skip("/proc/kallsyms does not show %s", name);
	return addr;
}

static void read_kernel(uint64_t addr, void *to, size_t length)
{
	struct elf64_hdr header;
	struct elf64_phdr segment;
	int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		test_skip("no /proc/kcore");
	MUST(pread(fd, &header, sizeof(header), 0) == sizeof(header));
	for (int i = 0; i < header.e_phnum; i++) {
		MUST(pread(fd, &segment, sizeof(segment),
			   header.e_phoff + i * sizeof(segment)) == sizeof(segment));
		if (segment.p_type != PT_LOAD || addr < segment.p_vaddr ||
		    addr - segment.p_vaddr >= segment.p_memsz)
			continue;
		MUST(pread(fd, to, length, segment.p_offset + addr -
					   segment.p_vaddr) == (ssize_t)length);
		close(fd);
		return;
	}
	test_skip("/proc/kcore does not show address %#llx",
		  (unsigned long long)addr);
}

long page_references(const void *addr)
{
	uint64_t base;
	int32_t count;

	read_kernel(symbol("vmemmap_base"), &base, sizeof(base));
	read_kernel(base + frame_of(addr) * PAGE_STRUCT + REFCOUNT, &count,
		    sizeof(count));
	return count;
}

unsigned long long page_flags(const void *addr)
{
	return read_u64("/proc/kpageflags", frame_of(addr));
}

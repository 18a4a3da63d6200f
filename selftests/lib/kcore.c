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
/* Where they are in a kernel whose layout is not made at boot, which has no variable. */
#define VMEMMAP		0xffffea0000000000ULL

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

/* 0: there is none of that name. */
static uint64_t symbol(const char *name)
{
	char line[256], found[128];
	unsigned long long addr = 0, at = 0;
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
	if (!at)
		test_skip("/proc/kallsyms shows no addresses");
	return addr;
}

bool kernel_has(const char *name)
{
	return symbol(name);
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
	uint64_t base = VMEMMAP, variable = symbol("vmemmap_base");
	int32_t count;

	if (variable)
		read_kernel(variable, &base, sizeof(base));
	read_kernel(base + frame_of(addr) * PAGE_STRUCT + REFCOUNT, &count,
		    sizeof(count));
	return count;
}

unsigned long long page_flags(const void *addr)
{
	return read_u64("/proc/kpageflags", frame_of(addr));
}

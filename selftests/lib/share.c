// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Owns the process that shares memory with the one under test, and what is done to
 * memory by order; see mem.h. Makes none of the kinds of memory.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem.h"
#include "mm.h"
#include "proc.h"
#include "rc.h"
#include "test.h"

/* A page with another flag than the rest of its huge page, which changes nothing. */
static void split(struct mem *m)
{
	for (size_t i = 0; i < m->map_length; i += THP_SIZE) {
		MUST(!madvise(m->map + i, PAGE, MADV_DONTDUMP));
		MUST(!madvise(m->map + i, PAGE, MADV_DODUMP));
	}
}

void mem_do(struct mem *m, enum mem_order order, unsigned char byte)
{
	switch (order) {
	case MEM_WRITE:
		memset(m->p, byte, m->length);
		break;
	case MEM_UNMAP:
		MUST(!munmap(m->map, m->map_length));
		break;
	case MEM_EXIT:
		_exit(0);
	case MEM_EXEC:
		/* Stays, without the memory, until its process group ends. */
		execl("/bin/sleep", "sleep", "600", NULL);
		_exit(127);
	case MEM_PAGEOUT:
		mm_pageout(m->map, m->map_length);
		break;
	case MEM_MERGE:
		MUST(!madvise(m->map, m->map_length, MADV_MERGEABLE));
		break;
	case MEM_SPLIT:
		split(m);
		break;
	case MEM_COLLAPSE:
		MUST(!madvise(m->map, m->map_length, MADV_HUGEPAGE));
		madvise(m->map, m->map_length, MADV_COLLAPSE);
		break;
	}
}

void mem_scan(void)
{
	struct mem alike = mem_make(&mem_written, MEM_ALIKE * PAGE);

	mem_do(&alike, MEM_MERGE, 0);
	mm_ksm_scan();
	/* Or less, when there are more like them. */
	CHECK_BETWEEN(1, mem_range(alike.map, alike.map_length, "Pss"), PAGE);
	mem_drop(&alike);
}

void mem_serve(struct mem *m, int sock)
{
	unsigned char order[2];

	while (recv(sock, order, 2, MSG_WAITALL) == 2) {
		mem_do(m, order[0], order[1]);
		if (send(sock, order, 1, MSG_NOSIGNAL) != 1)
			break;
	}
	_exit(0);
}

static void order_one(struct mem *m, enum mem_order order, unsigned char byte)
{
	unsigned char record[2] = { order, byte };

	if (m->sock < 0)
		return;
	sock_put(m->sock, record, 2);
	if (order != MEM_EXIT && order != MEM_EXEC) {
		sock_get(m->sock, record, 1);
		return;
	}
	/* The end of the process, or its exec, closes the socket. */
	MUST(recv(m->sock, record, 1, 0) == 0);
	close(m->sock);
	m->sock = -1;
	if (order == MEM_EXIT && m->other > 0)
		MUST(waitpid(m->other, NULL, 0) == m->other);
}

void mem_other(struct mem *m, enum mem_order order, unsigned char byte)
{
	order_one(m, order, byte);
	for (size_t i = 0; i < m->nr_parts; i++)
		order_one(&m->parts[i], order, byte);
}

void mem_share(struct mem *m, bool region_in_child)
{
	int sock[2];
	pid_t pid;

	fflush(stdout);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	pid = fork();
	MUST(pid >= 0);
	if (!!pid != region_in_child) {
		/* This side owns the region, the other one obeys. */
		m->sock = sock[0];
		m->other = pid;
		close(sock[1]);
		return;
	}
	close(sock[0]);
	if (!pid)
		mem_serve(m, sock[1]);
	/* The case's process is the one that shares: it ends as its child does. */
	pid_t server = fork();

	MUST(server >= 0);
	if (!server)
		mem_serve(m, sock[1]);
	/* Its own copy of the mapping would be a third one. */
	munmap(m->map, m->map_length);
	close(sock[1]);
	test_join(pid);
	test_exit();
}

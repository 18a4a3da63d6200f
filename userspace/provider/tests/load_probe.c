// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Prints what a program sees: "device NAME" for each device that a provider has
 * claimed, "library PATH" for each copy of the provider in this process, and "done"
 * at the end. Used by load_test.sh, which makes the devices up.
 *
 * libibverbs asks RDMA netlink first and looks into sysfs only if that is not
 * there. Where ib_core happens to be loaded, netlink would answer with the
 * machine's own devices, so this process makes it be absent.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static int forget_rdma_netlink(void)
{
	static struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_RDMA, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPROTONOSUPPORT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
		.len = sizeof(filter) / sizeof(filter[0]),
		.filter = filter,
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void print_libraries(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];
	char path[4096];
	unsigned long offset;

	if (!maps)
		return;
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%*s %*s %lx %*s %*s %4095s", &offset, path) == 2 && !offset &&
		    strstr(path, "/libsample_hca"))
			printf("library %s\n", path);
	}
	fclose(maps);
}

int main(void)
{
	struct ibv_device **devices;
	int count;
	int i;

	if (forget_rdma_netlink()) {
		perror("seccomp");
		return 2;
	}
	devices = ibv_get_device_list(&count);
	if (!devices) {
		perror("ibv_get_device_list");
		return 1;
	}
	for (i = 0; i < count; i++)
		printf("device %s\n", ibv_get_device_name(devices[i]));
	print_libraries();
	ibv_free_device_list(devices);
	puts("done");
	return 0;
}

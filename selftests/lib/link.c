// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Owns the making and removing of links; see link.h. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "link.h"
#include "proc.h"
#include "rc.h"

#define TYPE "sample_hca"

void link_need(void)
{
	if (geteuid())
		test_skip("needs root, to make links");
	if (!dev_is_sample())
		test_skip("%s is not a sample HCA", dev_name());
	if (RUN("rdma", "link", "show"))
		test_skip("no rdma tool (package iproute2)");
}

int rdma_link_add(const char *name, const char *netdev, char *out, size_t size)
{
	return run_output(out, size, (const char *const[]){
		"rdma", "link", "add", name, "type", TYPE, "netdev", netdev, NULL });
}

int rdma_link_delete(const char *name)
{
	return RUN("rdma", "link", "delete", name);
}

struct link link_new(int i)
{
	struct link link;
	char addr[32], out[256];
	int status;

	snprintf(link.name, sizeof(link.name), "shcatest%d", i);
	snprintf(link.netdev, sizeof(link.netdev), "shcatest%d", i);
	snprintf(addr, sizeof(addr), "10.78.%d.1/24", i);
	link_drop(&link);
	status = run_output(out, sizeof(out), (const char *const[]){
		"ip", "link", "add", link.netdev, "type", "dummy", NULL });
	if (status)
		test_skip("no dummy network interfaces: %s", out);
	MUST_EQ(0, RUN("ip", "addr", "add", addr, "dev", link.netdev));
	MUST_EQ(0, RUN("ip", "link", "set", link.netdev, "up"));
	MUST_EQ(0, rdma_link_add(link.name, link.netdev, out, sizeof(out)));
	return link;
}

void link_drop(const struct link *link)
{
	char path[64];

	if (dev_exists(link->name))
		MUST_EQ(0, rdma_link_delete(link->name));
	snprintf(path, sizeof(path), "/sys/class/net/%s", link->netdev);
	if (!access(path, F_OK))
		MUST_EQ(0, RUN("ip", "link", "delete", link->netdev));
}

void rdma_resources(const char *name, char *out, size_t size)
{
	MUST_EQ(0, run_output(out, size, (const char *const[]){
		"rdma", "resource", "show", name, NULL }));
}

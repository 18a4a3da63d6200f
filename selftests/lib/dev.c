// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Owns how the device to test is found, opened and described; see rc.h. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/sample_hca-abi.h>

#include "rc.h"

#define SYS_CLASS "/sys/class/infiniband"

static char chosen[64];

static bool is_sample(const char *name)
{
	char path[256], type[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), SYS_CLASS "/%s/hca_type", name);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (fscanf(f, "%63s", type) != 1)
		type[0] = '\0';
	fclose(f);
	return !strcmp(type, SHCA_HCA_TYPE);
}

bool dev_exists(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), SYS_CLASS "/%s", name);
	return !access(path, F_OK);
}

static bool find_sample(void)
{
	struct dirent *e;
	DIR *d;

	d = opendir(SYS_CLASS);
	if (!d)
		return false;
	/* The first by name, so that every run tests the same one. */
	while ((e = readdir(d)))
		if (e->d_name[0] != '.' && is_sample(e->d_name) &&
		    (!chosen[0] || strcmp(e->d_name, chosen) < 0))
			snprintf(chosen, sizeof(chosen), "%.63s", e->d_name);
	closedir(d);
	return chosen[0];
}

const char *dev_present(void)
{
	static char reason[128];
	const char *name = getenv(DEV_ENV);

	if (name && *name) {
		snprintf(chosen, sizeof(chosen), "%s", name);
		if (!dev_exists(chosen)) {
			snprintf(reason, sizeof(reason),
				 "no RDMA device %.60s (from " DEV_ENV ")", chosen);
			return reason;
		}
	} else if (!find_sample()) {
		return "no sample_hca device; make one with rdma link add";
	}
	test_note("device %s", chosen);
	return NULL;
}

const char *dev_ready(void)
{
	const char *reason = dev_present();
	struct ibv_device **list;

	if (reason)
		return reason;
	/* Every provider there is, which each case would have to do again. */
	list = ibv_get_device_list(NULL);
	if (list)
		ibv_free_device_list(list);
	return NULL;
}

const char *dev_name(void)
{
	return chosen;
}

bool dev_is_sample(void)
{
	return is_sample(chosen);
}

/* Prefers RoCE v2, and takes any GID that is not zero where there is none. */
static bool find_gid(struct dev *d)
{
	struct ibv_port_attr port;
	bool found = false;

	MUST_ERR(0, ibv_query_port(d->ctx, 1, &port));
	d->mtu = port.active_mtu;
	for (int i = 0; i < port.gid_tbl_len; i++) {
		static const union ibv_gid zero;
		struct ibv_gid_entry e;

		if (ibv_query_gid_ex(d->ctx, 1, i, &e, 0) ||
		    !memcmp(&e.gid, &zero, sizeof(zero)))
			continue;
		if (found && e.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		d->gid = e.gid;
		d->gid_index = i;
		found = true;
		if (e.gid_type == IBV_GID_TYPE_ROCE_V2)
			break;
	}
	return found;
}

struct dev *dev_open_name(const char *name)
{
	struct dev *d = calloc(1, sizeof(*d));
	struct ibv_device **list, *found = NULL;
	int flags;

	MUST(d);
	list = ibv_get_device_list(NULL);
	MUST(list);
	for (int i = 0; list[i] && !found; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			found = list[i];
	if (!found) {
		test_fail(__FILE__, __LINE__,
			  "ibv_get_device_list: expected %s in it, got a list without (is its provider installed?)",
			  name);
		test_exit();
	}
	d->ctx = ibv_open_device(found);
	MUST(d->ctx);
	ibv_free_device_list(list);
	MUST_ERR(0, ibv_query_device(d->ctx, &d->attr));
	MUST(find_gid(d));
	flags = fcntl(d->ctx->async_fd, F_GETFL);
	MUST(!fcntl(d->ctx->async_fd, F_SETFL, flags | O_NONBLOCK));
	return d;
}

struct dev *dev_open(void)
{
	return dev_open_name(dev_name());
}

int async_wait(struct ibv_context *ctx, unsigned int ms)
{
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	if (poll(&p, 1, ms) < 1 || ibv_get_async_event(ctx, &event))
		return -1;
	ibv_ack_async_event(&event);
	return event.event_type;
}

// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The smallest provider in C++: proves that driver.h of the patched rdma-core
// compiles, links and loads without a C file. Says on standard error that it was
// asked about a device, and never takes one.
#include <config.h>
#include <cstdio>
#include <cstdlib>
#include <infiniband/driver.h>

namespace
{
struct context {
	struct verbs_context verbs;
};
} // namespace

extern "C" {

static bool match_device(struct verbs_sysfs_dev *dev)
{
	std::fprintf(stderr, "cxx_provider: asked about %s\n", dev->ibdev_name);
	return false;
}

static struct verbs_device *alloc_device(struct verbs_sysfs_dev *)
{
	return static_cast<struct verbs_device *>(std::calloc(1, sizeof(struct verbs_device)));
}

static void uninit_device(struct verbs_device *device)
{
	std::free(device);
}

static struct verbs_context *alloc_context(struct ibv_device *device, int cmd_fd, void *)
{
	static const struct verbs_context_ops ops = {};
	struct ib_uverbs_get_context_resp resp = {};
	struct ibv_get_context cmd = {};
	struct context *ctx;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, verbs, RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return nullptr;
	if (ibv_cmd_get_context(&ctx->verbs, &cmd, sizeof(cmd), &resp, sizeof(resp))) {
		verbs_uninit_context(&ctx->verbs);
		std::free(ctx);
		return nullptr;
	}
	verbs_set_ops(&ctx->verbs, &ops);
	return &container_of(&ctx->verbs, struct context, verbs)->verbs;
}

extern const struct verbs_device_ops cxx_device_ops;
const struct verbs_device_ops cxx_device_ops = {
	.name = "cxx",
	.match_device = match_device,
	.alloc_context = alloc_context,
	.alloc_device = alloc_device,
	.uninit_device = uninit_device,
};
PROVIDER_DRIVER(cxx, cxx_device_ops);
}

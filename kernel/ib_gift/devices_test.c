// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: which drivers' calls are redirected. Built in the place of devices.c,
 * whose rule it is. Asks no device.
 */
#include "devices.c"

#include <kunit/test.h>

struct fit_row {
	const char *name;
	u32 driver;
	bool passes;
};

static const struct fit_row fit_rows[] = {
	{ "no driver of the kernel", RDMA_DRIVER_UNKNOWN, false },
	{ "mlx5, which has indirect keys", RDMA_DRIVER_MLX5, false },
	{ "mlx4, which adds LOCAL_WRITE", RDMA_DRIVER_MLX4, false },
	{ "cxgb4", RDMA_DRIVER_CXGB4, true },
	{ "mthca, whose queues are regions", RDMA_DRIVER_MTHCA, false },
	{ "bnxt_re", RDMA_DRIVER_BNXT_RE, true },
	{ "ocrdma", RDMA_DRIVER_OCRDMA, true },
	{ "irdma, whose queues are regions", RDMA_DRIVER_IRDMA, false },
	{ "vmw_pvrdma, which has a hypervisor", RDMA_DRIVER_VMW_PVRDMA, false },
	{ "qedr", RDMA_DRIVER_QEDR, true },
	{ "hns", RDMA_DRIVER_HNS, true },
	{ "usnic, which pins by itself", RDMA_DRIVER_USNIC, false },
	{ "rxe", RDMA_DRIVER_RXE, true },
	{ "hfi1", RDMA_DRIVER_HFI1, true },
	{ "qib", RDMA_DRIVER_QIB, true },
	{ "efa, which removes the flag", RDMA_DRIVER_EFA, false },
	{ "siw", RDMA_DRIVER_SIW, COMPAT_SIW_USES_UMEM },
	{ "erdma", RDMA_DRIVER_ERDMA, true },
	{ "the number after the last that is known", RDMA_DRIVER_ERDMA + 1, false },
	{ "a number far outside", U32_MAX, false },
};

static void fit_desc(const struct fit_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(fit, fit_rows, fit_desc);

static void driver_is_fit(struct kunit *test)
{
	const struct fit_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, fit(row->driver, false), row->passes);
}

/* One that re-registers is fit only where that cannot make a region writable. */
static void rereg_is_checked(struct kunit *test)
{
	const struct fit_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, fit(row->driver, true),
			row->passes && COMPAT_REREG_IS_CHECKED);
}

static struct kunit_case fit_cases[] = {
	KUNIT_CASE_PARAM(driver_is_fit, fit_gen_params),
	KUNIT_CASE_PARAM(rereg_is_checked, fit_gen_params),
	{}
};

static struct kunit_suite fit_suite = {
	.name = "ib_gift_devices",
	.test_cases = fit_cases,
};

kunit_test_suite(fit_suite);

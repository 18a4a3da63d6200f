// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "real.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

namespace giftrun
{

namespace
{

/* The versions that the program binds to: one older than these is not ours. */
template <typename Function>
void find(Function *function, const char *name, const char *version)
{
	*function = reinterpret_cast<Function>(dlvsym(RTLD_NEXT, name, version));
	if (!*function) {
		say(std::string("no ") + name + "@" + version + " in this process's libibverbs");
		abort();
	}
}

} // namespace

const Real &real()
{
	static const Real functions = [] {
		Real r{};

		find(&r.reg_mr_iova2, "ibv_reg_mr_iova2", "IBVERBS_1.8");
		find(&r.rereg_mr, "ibv_rereg_mr", "IBVERBS_1.1");
		find(&r.dereg_mr, "ibv_dereg_mr", "IBVERBS_1.1");
		find(&r.create_qp, "ibv_create_qp", "IBVERBS_1.1");
		find(&r.modify_qp, "ibv_modify_qp", "IBVERBS_1.1");
		find(&r.destroy_qp, "ibv_destroy_qp", "IBVERBS_1.1");
		find(&r.qp_to_qp_ex, "ibv_qp_to_qp_ex", "IBVERBS_1.6");
		find(&r.close_device, "ibv_close_device", "IBVERBS_1.1");
		return r;
	}();

	return functions;
}

/* One write(), so that lines of several threads and processes stay whole. */
void say(const std::string &what)
{
	const std::string line = "gift-run: " + what + "\n";

	if (write(STDERR_FILENO, line.data(), line.size()) < 0) {
		return;
	}
}

} // namespace giftrun

// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Stands in front of the calls that make, reset and destroy what posts go to. Changes
 * none of them.
 */
#include <vector>

#include "hooks.hpp"
#include "real.hpp"
#include "state.hpp"

using giftrun::QpState;
using giftrun::real;
using giftrun::Region;
using giftrun::SendQueue;
using giftrun::State;
using giftrun::state;

extern "C" {

ibv_qp *ibv_create_qp(ibv_pd *pd, ibv_qp_init_attr *attr)
{
	const bool seen = giftrun::hook(pd->context);
	ibv_qp *const qp = real().create_qp(pd, attr);

	if (qp && seen) {
		state().registry.add(qp, {std::make_shared<SendQueue>(SendQueue::Seen::all,
								      attr->sq_sig_all != 0),
					  nullptr});
	}
	return qp;
}

/* What was posted before RESET is not executed; what is left of it in a CQ counts not. */
int ibv_modify_qp(ibv_qp *qp, ibv_qp_attr *attr, int mask)
{
	const bool reset = mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET;
	const int error = real().modify_qp(qp, attr, mask);

	if (!error && reset) {
		QpState known = state().registry.qp(qp);

		if (known.queue) {
			known.queue->close();
			known.queue = std::make_shared<SendQueue>(SendQueue::Seen::nothing);
			if (known.ex) {
				known.ex->queue = known.queue;
			}
			state().registry.add(qp, known);
		}
	}
	return error;
}

int ibv_destroy_qp(ibv_qp *qp)
{
	/* First: as soon as it is gone another may have its number. */
	QpState known = state().registry.remove(qp);
	const int error = real().destroy_qp(qp);

	if (known.queue) {
		if (error) {
			state().registry.add(qp, known);
		} else {
			known.queue->close();
		}
	}
	return error;
}

int ibv_close_device(ibv_context *context)
{
	State &s = state();
	std::vector<std::shared_ptr<Region>> regions;
	std::vector<std::shared_ptr<SendQueue>> queues;

	s.registry.unhook(context, &regions, &queues);
	for (const auto &queue : queues) {
		queue->close();
	}
	for (const auto &region : regions) {
		s.fresh.drop(region.get());
	}
	return real().close_device(context);
}

/* At exit, after what the program itself registered for it. */
__attribute__((destructor)) static void at_exit()
{
	State &s = state();

	if (s.enabled && s.options.report && (s.report.any() || s.first_process)) {
		giftrun::write_report(s.report.text(), s.options.report_file);
	}
}

} // extern "C"

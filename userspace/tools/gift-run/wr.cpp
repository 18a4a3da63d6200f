// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Stands in front of ibv_wr_set_sge() and its kin, which are inline calls through the
 * queue pair. Only where a request's memory is named is changed; which request it is
 * does not matter, since no device writes through a gift region or a fresh one.
 *
 * What such a queue pair has completed is not followed: the fresh regions that it has
 * used stay until it is reset or destroyed, or their region deregistered.
 */
#include <cstdint>
#include <vector>

#include "hooks.hpp"
#include "real.hpp"
#include "refresh.hpp"
#include "state.hpp"

using giftrun::Fresh;
using giftrun::QpEx;
using giftrun::QpState;
using giftrun::real;
using giftrun::State;
using giftrun::state;

namespace
{

/* The SGE with the lkey to send it from. An error is told by wr_complete(). */
ibv_sge fresh_sge(const ibv_qp_ex *qp, QpEx *ex, ibv_sge sge)
{
	State &s = state();
	Fresh *fresh;

	if (!s.registry.any_region()) {
		return sge;
	}
	const int error = giftrun::refresh(qp->qp_base.context, sge, &fresh);
	if (error) {
		ex->error = error;
	} else if (fresh) {
		sge.lkey = fresh->mr->lkey;
		s.fresh.put(fresh, ex->queue, UINT64_MAX);
	}
	return sge;
}

void set_sge(ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const std::shared_ptr<QpEx> ex = state().registry.ex(qp);
	const ibv_sge sge = fresh_sge(qp, ex.get(), {addr, length, lkey});

	ex->set_sge(qp, sge.lkey, addr, length);
}

void set_sge_list(ibv_qp_ex *qp, size_t number, const ibv_sge *list)
{
	const std::shared_ptr<QpEx> ex = state().registry.ex(qp);
	std::vector<ibv_sge> sges(list, list + number);

	for (ibv_sge &sge : sges) {
		sge = fresh_sge(qp, ex.get(), sge);
	}
	ex->set_sge_list(qp, number, sges.data());
}

int complete(ibv_qp_ex *qp)
{
	const std::shared_ptr<QpEx> ex = state().registry.ex(qp);
	const int error = ex->error;

	if (!error) {
		return ex->complete(qp);
	}
	ex->error = 0;
	ex->abort(qp);
	return error;
}

void abort_wr(ibv_qp_ex *qp)
{
	const std::shared_ptr<QpEx> ex = state().registry.ex(qp);

	ex->error = 0;
	ex->abort(qp);
}

} // namespace

extern "C" ibv_qp_ex *ibv_qp_to_qp_ex(ibv_qp *qp)
{
	ibv_qp_ex *const qpx = real().qp_to_qp_ex(qp);

	if (!qpx || !qpx->wr_set_sge || qpx->wr_set_sge == set_sge || !giftrun::hook(qp->context)) {
		return qpx;
	}
	QpState known{giftrun::queue_of(qp), nullptr};
	known.queue->lose();
	known.ex = std::make_shared<QpEx>();
	known.ex->set_sge = qpx->wr_set_sge;
	known.ex->set_sge_list = qpx->wr_set_sge_list;
	known.ex->complete = qpx->wr_complete;
	known.ex->abort = qpx->wr_abort;
	known.ex->queue = known.queue;
	state().registry.add(qp, known);
	qpx->wr_set_sge = set_sge;
	qpx->wr_set_sge_list = set_sge_list;
	qpx->wr_complete = complete;
	qpx->wr_abort = abort_wr;
	return qpx;
}

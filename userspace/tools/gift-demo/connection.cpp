// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See connection.hpp. */
#include "connection.hpp"

#include <fcntl.h>
#include <rdma/ib_gift.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

namespace demo
{

namespace
{

constexpr int queue_depth = 16;
constexpr uint8_t port = 1;
constexpr auto patience = std::chrono::seconds(60);

class GiftControl
{
public:
	GiftControl() : fd_(open("/dev/ib_gift", O_RDWR | O_CLOEXEC))
	{
		if (fd_ < 0) {
			fail(errno, "/dev/ib_gift (is ib_gift.ko loaded?)");
		}
	}
	~GiftControl() { close(fd_); }
	GiftControl(const GiftControl &) = delete;
	GiftControl &operator=(const GiftControl &) = delete;

	[[nodiscard]] bool honoured_on(const char *device) const
	{
		ib_gift_query query{};

		strncpy(query.device, device, sizeof(query.device) - 1);
		return ioctl(fd_, IB_GIFT_IOC_QUERY, &query) == 0 &&
		       query.caps & IB_GIFT_CAP_HONOURED;
	}

private:
	int fd_;
};

struct FoundGid {
	ibv_gid gid;
	uint8_t index;
};

/* An IPv4 address as a GID, or else any that a peer on this host can use. */
FoundGid find_gid(ibv_context *context)
{
	std::vector<ibv_gid_entry> table(64);
	ssize_t found = ibv_query_gid_table(context, table.data(), table.size(), 0);

	if (found < 0) {
		fail(static_cast<int>(-found), "ibv_query_gid_table");
	}
	table.resize(static_cast<size_t>(found));
	if (table.empty()) {
		throw std::runtime_error("the device has no GID: give its netdev an IP address");
	}
	auto ipv4 = std::find_if(table.begin(), table.end(), [](const ibv_gid_entry &entry) {
		static constexpr uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

		return std::equal(std::begin(prefix), std::end(prefix), entry.gid.raw);
	});
	const ibv_gid_entry &entry = ipv4 != table.end() ? *ipv4 : table.front();

	return {entry.gid, static_cast<uint8_t>(entry.gid_index)};
}

void modify(ibv_qp *qp, ibv_qp_attr attr, int mask, const char *what)
{
	if (int error = ibv_modify_qp(qp, &attr, mask)) {
		fail(error, what);
	}
}

} // namespace

Context open_gift_device()
{
	std::unique_ptr<ibv_device *[], FreeWith<ibv_free_device_list>> list(
		ibv_get_device_list(nullptr));
	GiftControl control;

	if (!list) {
		fail(errno, "ibv_get_device_list");
	}
	for (size_t i = 0; list[i] != nullptr; i++) {
		if (!control.honoured_on(ibv_get_device_name(list[i]))) {
			continue;
		}
		Context context(ibv_open_device(list[i]));
		if (!context) {
			fail(errno, "ibv_open_device");
		}
		return context;
	}
	throw std::runtime_error("no RDMA device honours IBV_ACCESS_GIFT "
				 "(rdma link add shca0 type sample_hca netdev ...)");
}

Mr register_memory(ibv_pd *pd, void *address, size_t length, int access)
{
	Mr mr(ibv_reg_mr(pd, address, length, access));

	if (!mr) {
		fail(errno, "ibv_reg_mr");
	}
	return mr;
}

Connection::Connection(ibv_context *context)
	: pd_(ibv_alloc_pd(context)),
	  cq_(ibv_create_cq(context, 2 * queue_depth, nullptr, nullptr, 0))
{
	if (!pd_ || !cq_) {
		fail(errno, "a protection domain and a completion queue");
	}
	ibv_qp_init_attr init{};
	init.send_cq = cq_.get();
	init.recv_cq = cq_.get();
	init.cap = {queue_depth, queue_depth, 1, 1, 0};
	init.qp_type = IBV_QPT_RC;
	init.sq_sig_all = 1;
	qp_.reset(ibv_create_qp(pd_.get(), &init));
	if (!qp_) {
		fail(errno, "ibv_create_qp");
	}
	const FoundGid found = find_gid(context);
	gid_ = found.gid;
	gid_index_ = found.index;
}

void Connection::connect(const Address &peer)
{
	ibv_qp_attr attr{};

	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = port;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	modify(qp_.get(), attr,
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	       "queue pair to INIT");

	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = peer.qp_num;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 12;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = port;
	attr.ah_attr.grh.dgid = peer.gid;
	attr.ah_attr.grh.sgid_index = gid_index_;
	attr.ah_attr.grh.hop_limit = 1;
	modify(qp_.get(), attr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	       "queue pair to RTR");

	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	modify(qp_.get(), attr,
	       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		       IBV_QP_MAX_QP_RD_ATOMIC,
	       "queue pair to RTS");
}

void Connection::post(ibv_send_wr work)
{
	ibv_send_wr *bad = nullptr;

	if (int error = ibv_post_send(qp_.get(), &work, &bad)) {
		fail(error, "ibv_post_send");
	}
}

void Connection::post_receive(ibv_mr *memory)
{
	ibv_sge sge{reinterpret_cast<uintptr_t>(memory->addr),
		    static_cast<uint32_t>(memory->length), memory->lkey};
	ibv_recv_wr work{};
	ibv_recv_wr *bad = nullptr;

	work.sg_list = &sge;
	work.num_sge = 1;
	if (int error = ibv_post_recv(qp_.get(), &work, &bad)) {
		fail(error, "ibv_post_recv");
	}
}

ibv_wc Connection::wait()
{
	const auto deadline = std::chrono::steady_clock::now() + patience;
	ibv_wc wc{};

	for (;;) {
		const int count = ibv_poll_cq(cq_.get(), 1, &wc);

		if (count < 0) {
			fail(EIO, "ibv_poll_cq");
		}
		if (count > 0) {
			return wc;
		}
		if (std::chrono::steady_clock::now() > deadline) {
			fail(ETIMEDOUT, "a completion");
		}
		std::this_thread::yield();
	}
}

ibv_wc Connection::run(const ibv_send_wr &work)
{
	post(work);
	return wait();
}

} // namespace demo

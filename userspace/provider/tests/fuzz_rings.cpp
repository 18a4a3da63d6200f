// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// libFuzzer target: everything that the provider reads from memory it shares with
// the driver: completion entries, the indexes of the other side, flags, and the
// geometry of a ring. Owns the promises that hold whatever is found there; a
// broken one aborts. Never plays the provider's own side falsely: the arguments of
// the verbs are legal ones.
#include "fixture.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace
{

using shca_test::QpOptions;
using shca_test::TestCq;
using shca_test::TestQp;

void must(bool holds, const char *promise)
{
	if (!holds) {
		std::fprintf(stderr, "broken promise: %s\n", promise);
		std::abort();
	}
}

// The fuzzer's bytes; zeros when they are used up.
class Input
{
public:
	Input(const std::uint8_t *data, std::size_t size) : data_(data), size_(size) {}

	bool empty() const { return size_ == 0; }
	template <typename T>
	T take()
	{
		T value{};
		const std::size_t n = std::min(size_, sizeof(value));
		std::memcpy(&value, data_, n);
		data_ += n;
		size_ -= n;
		return value;
	}
	std::uint32_t below(std::uint32_t limit) { return take<std::uint8_t>() % limit; }

private:
	const std::uint8_t *data_;
	std::size_t size_;
};

// An index that is near where it belongs, or anywhere.
std::uint32_t index(Input &in, std::uint32_t near)
{
	return in.below(4) != 0 ? near + in.take<std::int8_t>() : in.take<std::uint32_t>();
}

void check_completion(const ibv_wc &wc)
{
	must(wc.status >= IBV_WC_SUCCESS && wc.status <= IBV_WC_GENERAL_ERR,
	     "a status of the verbs");
	if (wc.status != IBV_WC_SUCCESS) {
		return;
	}
	must(wc.opcode <= IBV_WC_LOCAL_INV || wc.opcode == IBV_WC_RECV ||
		     wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM,
	     "an opcode of the verbs");
	must(wc.wc_flags == 0 || wc.wc_flags == IBV_WC_WITH_IMM || wc.wc_flags == IBV_WC_WITH_INV,
	     "immediate data or an invalidated key, never both");
}

void poll_plain(Input &in, TestCq &cq, std::uint32_t entries)
{
	const int count = static_cast<int>(in.below(entries + 3));
	std::vector<ibv_wc> wc(count);
	const int found = cq.poll(count, wc.data());

	must(found == -EIO || (found >= 0 && found <= count), "no more completions than asked for");
	must(found <= static_cast<int>(entries), "no more completions than the ring has entries");
	for (int i = 0; i < found; i++) {
		check_completion(wc[i]);
	}
}

void poll_extended(Input &in, TestCq &cq, std::uint32_t entries, std::uint64_t fields)
{
	ibv_poll_cq_attr attr{};
	ibv_cq_ex *ex = cq.ex();
	int error = ibv_start_poll(ex, &attr);
	std::uint32_t seen = 0;

	must(error == 0 || error == ENOENT || error == EIO, "start_poll: an error of the verbs");
	if (error != 0) {
		return;
	}
	for (std::uint32_t steps = in.below(entries + 3);; steps--) {
		ibv_wc wc{};
		wc.status = ex->status;
		wc.opcode = ibv_wc_read_opcode(ex);
		wc.wc_flags = ibv_wc_read_wc_flags(ex);
		(void)ibv_wc_read_vendor_err(ex);
		if ((fields & IBV_WC_EX_WITH_BYTE_LEN) != 0) {
			(void)ibv_wc_read_byte_len(ex);
		}
		if ((fields & IBV_WC_EX_WITH_IMM) != 0) {
			(void)ibv_wc_read_imm_data(ex);
		}
		check_completion(wc);
		must(++seen <= entries, "no more completions than the ring has entries");
		if (steps == 0 || (error = ibv_next_poll(ex)) != 0) {
			break;
		}
	}
	must(error == 0 || error == ENOENT || error == EIO, "next_poll: an error of the verbs");
	ibv_end_poll(ex);
}

void completions(Input &in)
{
	const std::uint32_t entries = 1U << in.below(5);
	const std::uint32_t first = in.take<std::uint32_t>();
	const std::uint64_t fields =
		in.take<std::uint8_t>() & (IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM);
	TestCq cq(entries, first, in.below(2) != 0);
	shca_ring_hdr &header = cq.ring.header();

	must(shca_core_check_wc_flags(fields) == 0, "fields that the tests read are offered");
	shca_core_set_poll_ops(cq.ex(), fields);
	while (!in.empty()) {
		switch (in.below(7)) {
		case 0:
			cq.complete(in.take<shca_cqe>());
			break;
		case 1:
			std::memcpy(cq.ring.slot(in.below(entries)), &header.producer, 1);
			break;
		case 2:
			header.producer = index(in, header.producer);
			break;
		case 3:
			header.consumer = index(in, header.consumer);
			break;
		case 4:
			poll_plain(in, cq, entries);
			break;
		case 5:
			poll_extended(in, cq, entries, fields);
			break;
		case 6:
			shca_core_cq_forget(cq.cq(), in.take<std::uint8_t>());
			break;
		}
	}
}

void post_send(Input &in, TestQp &qp, const QpOptions &options)
{
	static const std::uint32_t opcodes[] = {IBV_WR_SEND,          IBV_WR_SEND_WITH_IMM,
						IBV_WR_SEND_WITH_INV, IBV_WR_RDMA_WRITE,
						IBV_WR_RDMA_READ,     IBV_WR_LOCAL_INV};
	std::vector<ibv_sge> sges(in.below(options.max_send_sge + 1));
	std::vector<ibv_send_wr> wrs(1 + in.below(options.entries + 2));

	for (std::size_t i = 0; i < wrs.size(); i++) {
		wrs[i] = shca_test::send_wr(opcodes[in.below(std::size(opcodes))], i);
		wrs[i].next = i + 1 < wrs.size() ? &wrs[i + 1] : nullptr;
		if (wrs[i].opcode != IBV_WR_LOCAL_INV) {
			wrs[i].sg_list = sges.data();
			wrs[i].num_sge = static_cast<int>(sges.size());
		}
	}
	const int error = qp.send(wrs.data());
	must(error == 0 || error == ENOMEM || error == EINVAL || error == EOPNOTSUPP,
	     "post_send: an error of the verbs");
	must((error == 0) == (qp.bad_send == nullptr), "bad_wr names what was refused");
}

void post_recv(Input &in, TestQp &qp, const QpOptions &options)
{
	std::vector<ibv_sge> sges(in.below(options.max_recv_sge + 1));
	std::vector<ibv_recv_wr> wrs(1 + in.below(options.entries + 2));

	for (std::size_t i = 0; i < wrs.size(); i++) {
		wrs[i] = {};
		wrs[i].next = i + 1 < wrs.size() ? &wrs[i + 1] : nullptr;
		wrs[i].sg_list = sges.data();
		wrs[i].num_sge = static_cast<int>(sges.size());
	}
	const int error = qp.recv(wrs.data());
	must(error == 0 || error == ENOMEM || error == EINVAL, "post_recv: an error of the verbs");
	must((error == 0) == (qp.bad_recv == nullptr), "bad_wr names what was refused");
}

void requests(Input &in)
{
	QpOptions options;
	options.entries = 1U << in.below(4);
	options.first_index = in.take<std::uint32_t>();
	options.sq_sig_all = in.below(2) != 0;
	TestQp qp(options);

	while (!in.empty()) {
		shca_test::RingMemory &ring = in.below(2) != 0 ? qp.sq : qp.rq;
		switch (in.below(5)) {
		case 0:
			ring.header().consumer = index(in, ring.header().consumer);
			break;
		case 1:
			ring.header().producer = index(in, ring.header().producer);
			break;
		case 2:
			ring.header().flags = in.take<std::uint32_t>();
			break;
		case 3:
			post_send(in, qp, options);
			break;
		case 4:
			post_recv(in, qp, options);
			break;
		}
	}
}

// A ring that is called sound lies within its mapping, whatever the numbers.
void geometry(Input &in)
{
	static std::uint8_t base[1];
	const shca_ring_map map = {base, in.take<std::uint32_t>(), in.take<std::uint32_t>(),
				   in.take<std::uint32_t>()};
	static constexpr std::size_t headers[] = {SHCA_SEND_WQE_SIZE, SHCA_RECV_WQE_SIZE,
						  SHCA_CQE_SIZE};
	const std::size_t header = headers[in.below(std::size(headers))];
	const std::size_t payload = in.take<std::uint32_t>();

	if (!shca_ring_is_sound(&map, header, payload) || map.entries == 0) {
		return;
	}
	must((map.entries & (map.entries - 1)) == 0, "sound: a power of two");
	must(map.stride >= header && map.stride - header >= payload,
	     "sound: an entry fits its slot");
	must(SHCA_RING_ENTRIES_OFFSET + std::uint64_t{map.entries} * map.stride <= map.length,
	     "sound: the slots lie within the mapping");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	Input in(data, size);

	switch (in.below(3)) {
	case 0:
		completions(in);
		break;
	case 1:
		requests(in);
		break;
	case 2:
		geometry(in);
		break;
	}
	return 0;
}

// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See peer.hpp. */
#include "peer.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

namespace demo
{

namespace
{

constexpr size_t buffer_size = 1 << 20;

enum class Task : uint32_t {
	connect,
	read,
	write,
	send_with_invalidate,
};

} // namespace

struct Peer::Request {
	Task task;
	Pattern pattern;
	Address address;
	uint64_t remote_address;
	uint64_t length;
	uint32_t rkey;
	char text[64];
};

struct Peer::Reply {
	Address address;
	Outcome outcome;
};

/* What runs in the second process. */
class Peer::Process
{
public:
	explicit Process(int socket)
		: socket_(socket), context_(open_gift_device()), buffer_(buffer_size)
	{
	}

	void serve()
	{
		Request request;

		while (recv(socket_, &request, sizeof(request), MSG_WAITALL) == sizeof(request)) {
			const Reply reply = carry_out(request);

			if (send(socket_, &reply, sizeof(reply), 0) != sizeof(reply)) {
				fail(errno, "answer of the peer");
			}
		}
	}

private:
	Reply carry_out(const Request &request)
	{
		switch (request.task) {
		case Task::connect:
			return {connect(request.address), {}};
		case Task::read:
			return {{}, read(request)};
		case Task::write:
			return {{}, move(request, IBV_WR_RDMA_WRITE)};
		case Task::send_with_invalidate:
			return {{}, move(request, IBV_WR_SEND_WITH_INV)};
		}
		fail(EINVAL, "request to the peer");
	}

	Address connect(const Address &address)
	{
		memory_.reset();
		connection_ = std::make_unique<Connection>(context_.get());
		memory_ = register_memory(connection_->pd(), buffer_.data(), buffer_.size(),
					  IBV_ACCESS_LOCAL_WRITE);
		connection_->connect(address);
		return connection_->address();
	}

	ibv_wc run(const Request &request, ibv_wr_opcode opcode, uint64_t offset, size_t length)
	{
		ibv_sge sge{reinterpret_cast<uintptr_t>(buffer_.data()),
			    static_cast<uint32_t>(length), memory_->lkey};
		ibv_send_wr work{};

		work.sg_list = &sge;
		work.num_sge = 1;
		work.opcode = opcode;
		if (opcode == IBV_WR_SEND_WITH_INV) {
			work.invalidate_rkey = request.rkey;
		} else {
			work.wr.rdma.remote_addr = request.remote_address + offset;
			work.wr.rdma.rkey = request.rkey;
		}
		return connection_->run(work);
	}

	Outcome read(const Request &request)
	{
		Outcome outcome{IBV_WC_SUCCESS, 0};

		for (uint64_t done = 0; done < request.length; done += buffer_size) {
			const size_t length =
				std::min<uint64_t>(buffer_size, request.length - done);

			std::fill(buffer_.begin(), buffer_.end(), 0xee);
			outcome.status = run(request, IBV_WR_RDMA_READ, done, length).status;
			if (outcome.status != IBV_WC_SUCCESS) {
				return outcome;
			}
			for (size_t at = 0; at < length; at += page_size) {
				outcome.wrong_bytes += compare(&buffer_[at], request.pattern,
							       (done + at) / page_size);
			}
		}
		return outcome;
	}

	static uint64_t compare(const uint8_t *page, Pattern pattern, size_t index)
	{
		alignas(uint64_t) uint8_t expected[page_size];
		uint64_t wrong = 0;

		fill_page(expected, pattern, index);
		if (memcmp(expected, page, page_size) == 0) {
			return 0;
		}
		for (size_t i = 0; i < page_size; i++) {
			wrong += expected[i] != page[i];
		}
		return wrong;
	}

	Outcome move(const Request &request, ibv_wr_opcode opcode)
	{
		const size_t length = strnlen(request.text, sizeof(request.text));

		std::copy_n(request.text, length, buffer_.begin());
		return {run(request, opcode, 0, length).status, 0};
	}

	int socket_;
	Context context_;
	std::vector<uint8_t> buffer_;
	std::unique_ptr<Connection> connection_;
	Mr memory_;
};

Peer::Peer()
{
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets)) {
		fail(errno, "socketpair");
	}
	fflush(nullptr);
	pid_ = fork();
	if (pid_ < 0) {
		fail(errno, "fork");
	}
	if (pid_ == 0) {
		int status = 1;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(sockets[0]);
		try {
			Process(sockets[1]).serve();
			status = 0;
		} catch (const std::exception &error) {
			fprintf(stderr, "gift-demo: peer: %s\n", error.what());
		}
		_exit(status);
	}
	close(sockets[1]);
	socket_ = sockets[0];
}

Peer::~Peer()
{
	close(socket_);
	waitpid(pid_, nullptr, 0);
}

Peer::Reply Peer::ask(const Request &request)
{
	Reply reply;

	if (send(socket_, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request) ||
	    recv(socket_, &reply, sizeof(reply), MSG_WAITALL) != sizeof(reply)) {
		fail(EPIPE, "the peer process");
	}
	return reply;
}

void Peer::connect(Connection &connection)
{
	Request request{};

	request.task = Task::connect;
	request.address = connection.address();
	connection.connect(ask(request).address);
}

Outcome Peer::read(const void *address, size_t length, uint32_t rkey, Pattern pattern)
{
	Request request{};

	request.task = Task::read;
	request.pattern = pattern;
	request.remote_address = reinterpret_cast<uintptr_t>(address);
	request.length = length;
	request.rkey = rkey;
	return ask(request).outcome;
}

Outcome Peer::write(void *address, uint32_t rkey, const char *text)
{
	Request request{};

	request.task = Task::write;
	request.remote_address = reinterpret_cast<uintptr_t>(address);
	request.rkey = rkey;
	strncpy(request.text, text, sizeof(request.text) - 1);
	return ask(request).outcome;
}

Outcome Peer::send_with_invalidate(uint32_t rkey, const char *text)
{
	Request request{};

	request.task = Task::send_with_invalidate;
	request.rkey = rkey;
	strncpy(request.text, text, sizeof(request.text) - 1);
	return ask(request).outcome;
}

} // namespace demo

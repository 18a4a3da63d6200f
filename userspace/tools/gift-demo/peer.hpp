// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The other side of the demonstration: a second process with its own context
 * and connection, told what to do over a socket. Owns the process; what it
 * reads it compares by itself, so nothing but the adapter carries the data.
 */
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "connection.hpp"
#include "memory.hpp"

namespace demo
{

/* What an RDMA operation of the peer came to. */
struct Outcome {
	ibv_wc_status status;
	uint64_t wrong_bytes;
};

class Peer
{
public:
	/* Starts the process: before this one has threads, a context or memory. */
	Peer();
	~Peer();
	Peer(const Peer &) = delete;
	Peer &operator=(const Peer &) = delete;

	/* Connects a new queue pair of the peer with this one. */
	void connect(Connection &connection);
	/* RDMA READ of all of it, compared with the pattern. */
	Outcome read(const void *address, size_t length, uint32_t rkey, Pattern pattern);
	/* RDMA WRITE of a line of text. */
	Outcome write(void *address, uint32_t rkey, const char *text);
	/* A send of a line of text that invalidates rkey. */
	Outcome send_with_invalidate(uint32_t rkey, const char *text);

private:
	struct Request;
	struct Reply;
	class Process;

	Reply ask(const Request &request);

	int socket_;
	pid_t pid_;
};

} // namespace demo

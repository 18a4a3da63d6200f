// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A send with invalidate, step by step: this process lends a window on its
 * memory, the peer writes through it and gives it back with the message that
 * says so.
 */
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "memory.hpp"
#include "parts.hpp"

namespace demo
{

namespace
{

constexpr char first_text[] = "written through the window";
constexpr char second_text[] = "this must never arrive";
constexpr char message[] = "done, take the window back";

/* Prints one step and what it came to; returns whether it is as it has to be. */
bool step(int number, const char *what, bool good, const std::string &result)
{
	printf("  %d  %-50s %s%s\n", number, what, good ? "" : "WRONG: ", result.c_str());
	return good;
}

std::string key_text(uint32_t key)
{
	char text[16];

	snprintf(text, sizeof(text), "key 0x%08x", key);
	return text;
}

std::string quoted(const char *text, size_t length)
{
	return "\"" + std::string(text, strnlen(text, length)) + "\"";
}

/* Binds all of a region to a window and returns the key, or 0. */
uint32_t bind_window(Connection &connection, ibv_mw *window, ibv_mr *memory)
{
	ibv_send_wr work{};

	work.opcode = IBV_WR_BIND_MW;
	work.bind_mw.mw = window;
	work.bind_mw.rkey = ibv_inc_rkey(window->rkey);
	work.bind_mw.bind_info.mr = memory;
	work.bind_mw.bind_info.addr = reinterpret_cast<uintptr_t>(memory->addr);
	work.bind_mw.bind_info.length = memory->length;
	work.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	return connection.run(work).status == IBV_WC_SUCCESS ? work.bind_mw.rkey : 0;
}

} // namespace

bool show_send_with_invalidate(ibv_context *context, Peer &peer)
{
	std::vector<char> lent(page_size);
	std::vector<char> inbox(page_size);
	Connection connection(context);
	Mr memory = register_memory(connection.pd(), lent.data(), lent.size(),
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	Mr receive = register_memory(connection.pd(), inbox.data(), inbox.size(),
				     IBV_ACCESS_LOCAL_WRITE);
	Mw window(ibv_alloc_mw(connection.pd(), IBV_MW_TYPE_2));
	bool good = true;

	if (!window) {
		fail(errno, "ibv_alloc_mw");
	}
	peer.connect(connection);
	printf("Send with invalidate: a window is lent and comes back with the message\n\n");

	const uint32_t key = bind_window(connection, window.get(), memory.get());
	good &= step(1, "this process binds a window on its memory", key != 0,
		     key != 0 ? key_text(key) : "not bound");

	Outcome outcome = peer.write(lent.data(), key, first_text);
	good &= step(2, "the peer writes through it",
		     outcome.status == IBV_WC_SUCCESS && strcmp(lent.data(), first_text) == 0,
		     std::string(ibv_wc_status_str(outcome.status)) + ", memory is now " +
			     quoted(lent.data(), lent.size()));

	connection.post_receive(receive.get());
	outcome = peer.send_with_invalidate(key, message);
	good &= step(3, "the peer sends, and invalidates the key", outcome.status == IBV_WC_SUCCESS,
		     ibv_wc_status_str(outcome.status));

	const ibv_wc wc = connection.wait();
	good &= step(4, "this process receives the message",
		     wc.status == IBV_WC_SUCCESS && strcmp(inbox.data(), message) == 0,
		     quoted(inbox.data(), inbox.size()));
	const bool told = wc.status == IBV_WC_SUCCESS && (wc.wc_flags & IBV_WC_WITH_INV) &&
			  wc.invalidated_rkey == key;
	good &= step(5, "... and its completion says what was invalidated", told,
		     told ? "IBV_WC_WITH_INV, " + key_text(wc.invalidated_rkey)
			  : "flags or key are not right");

	outcome = peer.write(lent.data(), key, second_text);
	good &= step(6, "the peer writes by the same key again",
		     outcome.status == IBV_WC_REM_ACCESS_ERR,
		     std::string(outcome.status == IBV_WC_SUCCESS ? "" : "refused: ") +
			     ibv_wc_status_str(outcome.status));
	good &= step(7, "... and the memory is as it was", strcmp(lent.data(), first_text) == 0,
		     quoted(lent.data(), lent.size()));

	printf("\n%s\n", good ? "Shown: the message took the window back; its receiver knows; the "
				"key is dead."
			      : "NOT shown: a step above is not as it has to be.");
	fflush(stdout);
	return good;
}

} // namespace demo

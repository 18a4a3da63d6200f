// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What registration costs: every kind of memory is registered as verbs always
 * did and with IBV_ACCESS_GIFT, measured, and read by the peer. Then the price
 * of GIFT: a page written after registration, before and after the memory is
 * registered again.
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "memory.hpp"
#include "parts.hpp"

namespace demo
{

namespace
{

constexpr double mib = 1 << 20;
/* What else happens on the machine while a region is registered. */
constexpr double noise = 1 * mib;

struct Measured {
	double cost; /* bytes; negative when memory was given back meanwhile */
	double milliseconds;
	Outcome outcome;
};

Measured measure(const Kind &kind, Connection &connection, Peer &peer, int access)
{
	const std::unique_ptr<Memory> memory = kind.make();
	const auto before = static_cast<double>(anonymous_memory_in_use());
	const auto start = std::chrono::steady_clock::now();
	const Mr mr = register_memory(connection.pd(), memory->address(), memory->length(), access);
	const std::chrono::duration<double, std::milli> time =
		std::chrono::steady_clock::now() - start;
	const double cost = static_cast<double>(anonymous_memory_in_use()) - before;

	return {cost, time.count(),
		peer.read(memory->address(), memory->length(), mr->rkey, memory->pattern())};
}

/* "-0.0" would make a reader wonder. */
double in_mib(double bytes)
{
	const double value = bytes / mib;

	return value > -0.05 && value < 0.05 ? 0.0 : value;
}

bool print_row(const char *kind, size_t length, const char *how, const Measured &m)
{
	const bool right = m.outcome.status == IBV_WC_SUCCESS && m.outcome.wrong_bytes == 0;

	printf("  %-15s %4.0f MiB  %-6s %8.1f MiB %9.1f ms   ", kind,
	       static_cast<double>(length) / mib, how, in_mib(m.cost), m.milliseconds);
	if (m.outcome.status != IBV_WC_SUCCESS) {
		printf("%s\n", ibv_wc_status_str(m.outcome.status));
	} else if (right) {
		printf("right, every byte\n");
	} else {
		printf("%llu bytes wrong\n",
		       static_cast<unsigned long long>(m.outcome.wrong_bytes));
	}
	return right;
}

bool show_kind(const Kind &kind, Connection &connection, Peer &peer)
{
	const size_t length = kind.make()->length();
	const Measured plain = measure(kind, connection, peer, IBV_ACCESS_REMOTE_READ);
	const Measured gift =
		measure(kind, connection, peer, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_GIFT);
	bool good = true;

	good &= print_row(kind.name, length, "plain", plain);
	good &= print_row("", length, "GIFT", gift);

	const double expected = kind.plain_costs_all ? static_cast<double>(length) : 0;
	if (plain.cost < expected - noise || plain.cost > expected + noise) {
		printf("  WRONG: a plain registration of this kind costs %.1f MiB\n",
		       in_mib(expected));
		good = false;
	}
	if (gift.cost > noise) {
		printf("  WRONG: GIFT was to cost nothing\n");
		good = false;
	}
	return good;
}

/* What the peer reads from the first bytes of a page, by one RDMA READ. */
bool peer_sees(Peer &peer, const Memory &memory, uint32_t rkey, bool written)
{
	const Outcome outcome = peer.read(memory.address(), page_size, rkey, memory.pattern());

	return outcome.status == IBV_WC_SUCCESS && (outcome.wrong_bytes != 0) == written;
}

bool show_price(Connection &connection, Peer &peer)
{
	const std::unique_ptr<Memory> memory = kinds[0].make();
	const Mr mr = register_memory(connection.pd(), memory->address(), memory->length(),
				      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_GIFT);
	const uint32_t key = mr->rkey;

	memset(memory->address(), 0x5a, page_size);
	const bool old_bytes = peer_sees(peer, *memory, key, false);
	const int error = ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr,
				       memory->address(), memory->length(), 0);
	const bool new_bytes = error == 0 && mr->rkey == key && peer_sees(peer, *memory, key, true);

	printf("\n  the price: an untouched page, written after it was registered with GIFT\n");
	printf("    the peer reads                          %s\n",
	       old_bytes ? "the old bytes" : "WRONG: something else");
	printf("    ... after ibv_rereg_mr, by the same key %s\n",
	       new_bytes ? "the new bytes" : "WRONG: something else");
	return old_bytes && new_bytes;
}

} // namespace

bool show_registration(ibv_context *context, Peer &peer)
{
	Connection connection(context);
	bool good = true;

	peer.connect(connection);
	printf("What it costs to register memory for a peer to read\n\n");
	printf("  %-15s %8s  %-6s %12s %12s   %s\n", "memory", "size", "flag", "memory used",
	       "time", "what the peer read");
	for (const Kind &kind : kinds) {
		good &= show_kind(kind, connection, peer);
	}
	good &= show_price(connection, peer);
	printf("\n%s\n\n", good ? "Shown: GIFT copies and allocates nothing, and the peer reads "
				  "every byte right."
				: "NOT shown: a row above is not as it has to be.");
	fflush(stdout);
	return good;
}

} // namespace demo

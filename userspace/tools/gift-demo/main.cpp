// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * gift-demo: what GIFT and send with invalidate do, shown by an ordinary
 * libibverbs program on the first device that honours GIFT. Exits with 0 only
 * when everything was as it has to be. Needs root, for KSM's settings.
 */
#include <cstdio>
#include <exception>

#include "parts.hpp"

int main()
{
	try {
		demo::Peer peer;
		const demo::Context context = demo::open_gift_device();

		printf("Device %s, stock libibverbs; the peer is a second process.\n\n",
		       ibv_get_device_name(context->device));
		const bool registration = demo::show_registration(context.get(), peer);
		const bool invalidation = demo::show_send_with_invalidate(context.get(), peer);

		return registration && invalidation ? 0 : 1;
	} catch (const std::exception &error) {
		fprintf(stderr, "gift-demo: %s\n", error.what());
		return 1;
	}
}

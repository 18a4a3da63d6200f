// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Stands in front of ibv_reg_mr() and its kin. A region that the rule names is
 * registered with GIFT; every other call goes on with the arguments that it came
 * with. A registration never fails because of GIFT.
 */
#include <infiniband/gift.h>

#include <cerrno>
#include <cstring>

#include "hooks.hpp"
#include "mappings.hpp"
#include "real.hpp"
#include "rule.hpp"
#include "state.hpp"

using giftrun::real;
using giftrun::Record;
using giftrun::Region;
using giftrun::State;
using giftrun::state;
using giftrun::Verdict;

namespace
{

/* What libibverbs may call while it is called: not the program's call. */
thread_local bool inside;

class Inside
{
public:
	Inside() : outer_(inside) { inside = true; }
	~Inside() { inside = outer_; }
	Inside(const Inside &) = delete;
	Inside &operator=(const Inside &) = delete;

private:
	const bool outer_;
};

bool honoured(const ibv_context *context)
{
	const std::string why = giftrun::refusal(context);

	if (!why.empty() && state().registry.first_refusal(context)) {
		giftrun::say(std::string("GIFT is not honoured on ") +
			     ibv_get_device_name(context->device) + ": " + why +
			     ". Registrations are left as they are.");
	}
	return why.empty();
}

struct Wanted {
	bool gift;
	unsigned int access; /* to register with */
};

Wanted decide(const ibv_context *context, const giftrun::Registration &registration)
{
	const giftrun::Decision decision =
		giftrun::decide(state().options, registration, giftrun::mapping_names);

	if (decision.verdict != Verdict::named || !honoured(context)) {
		return {false, registration.access};
	}
	return {true, decision.access};
}

/*
 * Fills in how the pages of a region were taken, from the sums before and after; old
 * is what the region had before, if anything. What else registers meanwhile, past
 * this library, shows, and then nothing is known.
 */
void count(const Region &region, const ib_gift_stats &before, const Record *old)
{
	Record *const record = region.record.get();
	const uint64_t pages = giftrun::pages_of(region.address, region.length).count;
	ib_gift_stats after;
	uint64_t sum = 0;

	if (state().device->stats(&after) || after.regions != before.regions + (old ? 0 : 1) ||
	    (old && !old->counted)) {
		return;
	}
	for (size_t kind = 0; kind < record->pages.size(); kind++) {
		const uint64_t had = before.pages[kind] - (old ? old->pages[kind] : 0);

		if (after.pages[kind] < had) {
			return;
		}
		record->pages[kind] = after.pages[kind] - had;
		sum += record->pages[kind];
	}
	record->counted = sum == pages;
}

/* Everything about a region except its mr, which is to come. */
std::shared_ptr<Region> new_region(ibv_pd *pd, const giftrun::Registration &r, uint64_t iova)
{
	auto region = std::make_shared<Region>();

	region->pd = pd;
	region->context = pd->context;
	region->address = r.address;
	region->length = r.length;
	region->iova = iova;
	region->asked = r.access;
	region->record = std::make_shared<Record>();
	region->record->device = ibv_get_device_name(pd->context->device);
	region->record->address = r.address;
	region->record->length = r.length;
	return region;
}

/*
 * Runs what makes the region or, if there is an old one, makes it again; counts, and
 * makes it known.
 */
template <typename Make>
int make_region(const std::shared_ptr<Region> &region, const Record *old, Make make)
{
	State &s = state();
	const std::lock_guard lock(*s.one_at_a_time);
	ib_gift_stats before;
	const int unknown = s.device->stats(&before);
	const int error = make();

	if (error) {
		return error;
	}
	if (region->record.get() != old) {
		if (!unknown) {
			count(*region, before, old);
		}
		s.report.add(region->record);
	}
	region->lkey = region->mr->lkey;
	s.registry.add(region);
	return 0;
}

ibv_mr *reg(ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	if (inside || !state().enabled) {
		return real().reg_mr_iova2(pd, addr, length, iova, access);
	}
	const Inside guard;
	const giftrun::Registration asked{reinterpret_cast<uint64_t>(addr), length, access};
	const Wanted wanted = decide(pd->context, asked);

	if (!wanted.gift) {
		state().report.left_alone();
		return real().reg_mr_iova2(pd, addr, length, iova, access);
	}
	giftrun::hook(pd->context);
	const std::shared_ptr<Region> region = new_region(pd, asked, iova);
	const int error = make_region(region, nullptr, [&] {
		region->mr = real().reg_mr_iova2(pd, addr, length, iova,
						 wanted.access | IBV_ACCESS_GIFT);
		return region->mr ? 0 : errno;
	});
	if (!error) {
		return region->mr;
	}
	state().report.refused();
	return real().reg_mr_iova2(pd, addr, length, iova, access);
}

/* A deregistration, which may not be counted as part of a registration. */
int dereg_region(ibv_mr *mr)
{
	const std::lock_guard lock(*state().one_at_a_time);

	return real().dereg_mr(mr);
}

/*
 * Makes a gift region a plain one with what the program asks for, in two steps: a
 * gift region may not become writable at once.
 */
int make_plain(ibv_mr *mr, int flags, ibv_pd *pd, const giftrun::Registration &wanted)
{
	constexpr unsigned int reads = IBV_ACCESS_REMOTE_READ;
	constexpr int both = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS;
	void *const addr = reinterpret_cast<void *>(wanted.address);
	const int error = real().rereg_mr(mr, flags | both, pd, addr, wanted.length,
					  static_cast<int>(wanted.access & reads));

	if (error || !(wanted.access & ~reads)) {
		return error;
	}
	return real().rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
			       static_cast<int>(wanted.access));
}

} // namespace

extern "C" {

ibv_mr *ibv_reg_mr(ibv_pd *pd, void *addr, size_t length, int access)
{
	return reg(pd, addr, length, reinterpret_cast<uintptr_t>(addr),
		   static_cast<unsigned int>(access));
}

ibv_mr *ibv_reg_mr_iova(ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return reg(pd, addr, length, iova, static_cast<unsigned int>(access));
}

ibv_mr *ibv_reg_mr_iova2(ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	return reg(pd, addr, length, iova, access);
}

int ibv_dereg_mr(ibv_mr *mr)
{
	State &s = state();
	/* First: as soon as it is gone another region may have its keys. */
	const std::shared_ptr<Region> region = inside ? nullptr : s.registry.remove(mr);

	if (!region) {
		return real().dereg_mr(mr);
	}
	const Inside guard;
	const int error = dereg_region(mr);

	if (error) {
		s.registry.add(region);
	} else {
		s.fresh.drop(region.get());
	}
	return error;
}

int ibv_rereg_mr(ibv_mr *mr, int flags, ibv_pd *pd, void *addr, size_t length, int access)
{
	State &s = state();
	const std::shared_ptr<Region> old = inside ? nullptr : s.registry.region(mr);

	/* A plain region stays one, and bad input is libibverbs's to refuse. */
	if (!old || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED || !flags ||
	    (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!length || !addr)) ||
	    (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS)) ||
	    (flags & IBV_REREG_MR_CHANGE_PD && !pd)) {
		return real().rereg_mr(mr, flags, pd, addr, length, access);
	}
	const Inside guard;
	const bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	const giftrun::Registration wanted{
		moves ? reinterpret_cast<uint64_t>(addr) : old->address,
		moves ? length : old->length,
		flags & IBV_REREG_MR_CHANGE_ACCESS ? static_cast<unsigned int>(access) : old->asked,
	};
	const Wanted now = decide(mr->context, wanted);
	ibv_pd *const new_pd = flags & IBV_REREG_MR_CHANGE_PD ? pd : old->pd;

	s.registry.remove(mr);
	if (!now.gift) {
		const int error = make_plain(mr, flags, pd, wanted);

		/* With an error the program may go on with the old region. */
		if (error) {
			s.registry.add(old);
		} else {
			s.fresh.drop(old.get());
		}
		return error;
	}

	const std::shared_ptr<Region> region =
		new_region(new_pd, wanted, moves ? wanted.address : old->iova);
	region->mr = mr;
	if (!moves) {
		region->record = old->record; /* the same pages */
	}
	const int error = make_region(region, old->record.get(), [&] {
		return real().rereg_mr(mr, flags, pd, addr, length,
				       flags & IBV_REREG_MR_CHANGE_ACCESS
					       ? static_cast<int>(now.access | IBV_ACCESS_GIFT)
					       : 0);
	});
	if (error) {
		s.registry.add(old);
	} else {
		s.fresh.drop(old.get());
	}
	return error;
}

} // extern "C"

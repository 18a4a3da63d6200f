// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "state.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>

#include "real.hpp"

namespace giftrun
{

namespace
{

void release(ibv_mr *mr)
{
	const std::lock_guard lock(*state().one_at_a_time);

	real().dereg_mr(mr);
}

Parsed options_here()
{
	const char *value = getenv(options_variable); // NOLINT(concurrency-mt-unsafe)

	return from_environment(value ? value : "");
}

void before_fork()
{
	State &s = state();

	s.registry.before_fork();
	s.fresh.mutex.lock();
	s.report.mutex.lock();
}

void after_fork_in_parent()
{
	State &s = state();

	s.report.mutex.unlock();
	s.fresh.mutex.unlock();
	s.registry.after_fork_in_parent();
}

/*
 * What was registered is the parent's memory, which the device goes on reading
 * whoever posts. The child may register and refresh its own.
 */
void after_fork_in_child()
{
	State &s = state();

	s.first_process = false;
	s.report.forget();
	s.report.mutex.unlock();
	s.fresh.forget();
	s.fresh.mutex.unlock();
	s.registry.after_fork_in_child();
	(void)s.device.release();
	s.device = std::make_unique<GiftDevice>();
	(void)s.one_at_a_time.release();
	s.one_at_a_time = std::make_unique<std::mutex>();
}

} // namespace

State::State()
	: fresh(options_here().options.fresh_limit, release),
	  device(std::make_unique<GiftDevice>()), one_at_a_time(std::make_unique<std::mutex>())
{
	Parsed parsed = options_here();

	if (!parsed.error.empty()) {
		say(std::string(options_variable) + " in the environment: " + parsed.error +
		    ": registrations are left as they are");
		return;
	}
	const char *first = getenv(process_variable); // NOLINT(concurrency-mt-unsafe)

	options = std::move(parsed.options);
	first_process = first && std::to_string(getpid()) == first;
	enabled = true;
}

State &state()
{
	static State *const the_state = new State;
	static const int registered =
		pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);

	(void)registered;
	return *the_state;
}

} // namespace giftrun

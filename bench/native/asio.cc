// SPDX-License-Identifier: GPL-2.0
/*
 * Boost.Asio: a heap. Changing a timer cancels its wait, whose handler then runs with an error. So
 * operations are measured in a handler, where programs do them.
 */
#ifdef HAVE_ASIO
#define BOOST_ASIO_DISABLE_THREADS 1
#include <chrono>
#include <memory>
#include <vector>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

extern "C" {
#include "native.h"
#include "peers.h"
}

namespace {

struct simulated {
	typedef std::chrono::nanoseconds duration;
	typedef duration::rep rep;
	typedef duration::period period;
	typedef std::chrono::time_point<simulated> time_point;
	static const bool is_steady = true;

	static time_point now() noexcept
	{
		return time_point(duration(lines_now));
	}
};

typedef boost::asio::basic_waitable_timer<simulated, boost::asio::wait_traits<simulated>,
					  boost::asio::io_context::executor_type> timer;

std::unique_ptr<boost::asio::io_context> context;
std::vector<timer> timers;

void asio_open(__u32 room, __u64)
{
	/* one thread */
	context.reset(new boost::asio::io_context(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE));
	timers.reserve(room);
	for (__u32 i = 0; i < room; i++)
		timers.emplace_back(context->get_executor());
}

void asio_arm(const struct change *c, __u32 n)
{
	for (__u32 i = 0; i < n; i++) {
		__u32 id = c[i].id;

		timers[id].expires_at(simulated::time_point(simulated::duration(c[i].deadline)));
		timers[id].async_wait([id](const boost::system::error_code &error) {
			if (!error)
				deliver(id);
		});
	}
}

void asio_cancel(const struct change *c, __u32 n)
{
	for (__u32 i = 0; i < n; i++)
		timers[c[i].id].cancel();
}

void asio_run(__u64)
{
	context->poll();
	context->restart();
}

void asio_inside(void (*call)(void *arg), void *arg)
{
	boost::asio::post(*context, [call, arg] { call(arg); });
	asio_run(0);
}

struct facility functions()
{
	struct facility f = {};

	f.name = "asio";
	f.open = asio_open;
	f.arm = asio_arm;
	f.move = asio_arm;
	f.refresh = asio_arm;
	f.cancel = asio_cancel;
	f.run = asio_run;
	f.inside = asio_inside;
	return f;
}

} /* namespace */

extern "C" const struct facility native_asio = functions();
#else
extern "C" {
#include "../facility/absent.h"
#include "peers.h"

FACILITY_ABSENT(native_asio, "asio", "libboost-dev");
}
#endif

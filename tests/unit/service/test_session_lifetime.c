/* service/session_timer: the age at which a session ends, and sessions that are to leave. */
#include <stdalign.h>
#include <unistd.h>

#include "support/host.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/timed.h"
#include "support/until.h"

GROUP(timer, timed_setup, timed_teardown);

/* ---- lifetime ---- */

TEST(timer, busy_session_ends_at_its_maximum_lifetime_without_loss)
{
    int64_t at_ns;

    timed.host.conf.max_lifetime_ns = 3 * NS_PER_S;
    at_ns = clock_now_ns();
    timed_connect_both();
    while (since_ms(at_ns) < 400) {
        sockets_say(timed.client, "x");
        sockets_hear(timed.server, "x");
        sockets_say(timed.server, "y");
        sockets_hear(timed.client, "y");
        PAUSE_MS(10);
    }
    sockets_say(timed.server, "last");
    sockets_hear(timed.client, "last");
    timed_expect_end_after(at_ns, 3000, SESSION_LIFETIME);
}

TEST(timer, maximum_lifetime_ends_a_session_that_waits_for_its_server)
{
    int64_t at_ns = clock_now_ns();

    timed.host.conf.max_lifetime_ns = 200 * NS_PER_MS;
    timed.server_fd = -1;
    timed.client = host_client(&timed.host);
    sockets_hear_end(timed.client);
    ck_assert_int_ge(since_ms(at_ns), 180);
    close(timed.client);
    timed.client = -1;
    host_expect_end(&timed.host, SESSION_LIFETIME);
}

TEST(timer, lifetimes_are_spread_over_the_jitter)
{
    unsigned tenths[10] = {0};
    int clients[SESSIONS];

    timed.host.conf.max_lifetime_ns = 1000 * NS_PER_S;
    timed.host.conf.lifetime_jitter = 40;
    timed.server_fd = -1;
    for (unsigned i = 0; i < SESSIONS; i++)
        clients[i] = host_client(&timed.host);
    for (unsigned i = 0; i < SESSIONS; i++) {
        const struct session *s = &timed.pairs[i]->session;
        int64_t lifetime_ns = s->expires_at_ns - s->began_at_ns;

        ck_assert_int_ge(lifetime_ns, 600 * NS_PER_S);
        ck_assert_int_le(lifetime_ns, 1000 * NS_PER_S);
        tenths[(lifetime_ns - 600 * NS_PER_S - 1) / (40 * NS_PER_S)]++;
        close(clients[i]);
    }
    for (unsigned i = 0; i < 10; i++)
        ck_assert_uint_gt(tenths[i], 0); /* by chance one in 10^8 runs */
}

TEST(timer, lifetime_without_jitter_is_as_configured)
{
    timed.host.conf.max_lifetime_ns = 1000 * NS_PER_S;
    timed_connect_both();
    ck_assert_int_eq(timed.pairs[0]->session.expires_at_ns - timed.pairs[0]->session.began_at_ns,
                     1000 * NS_PER_S);
}

TEST(timer, session_chosen_to_leave_ends_in_time)
{
    int64_t at_ns = clock_now_ns();

    timed_connect_both();
    host_leave_in(&timed.host, 200 * NS_PER_MS);
    sockets_say(timed.client, "still");
    sockets_hear(timed.server, "still");
    sockets_hear_end(timed.client);
    ck_assert_int_ge(since_ms(at_ns), 180);
    sockets_hear_end(timed.server);
    host_expect_end(&timed.host, SESSION_DRAIN);
}

TEST(timer, session_chosen_to_leave_does_not_exceed_its_lifetime)
{
    timed.host.conf.max_lifetime_ns = 2 * NS_PER_S; /* longer than until it is told to leave */
    timed_connect_both();
    host_leave_in(&timed.host, 3600 * NS_PER_S);
    sockets_hear_end(timed.client);
    sockets_hear_end(timed.server);
    host_expect_end(&timed.host, SESSION_DRAIN);
}

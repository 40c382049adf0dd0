/*
 * net/acceptor: bursts, what each error of accept4(2) means, and the pause when descriptors run
 * out.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "net/acceptor.h"
#include "support/accepts.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

GROUP(acceptor, accepts_enter, accepts_leave);

TEST(acceptor, a_client_arrives_with_its_address)
{
    struct address own = {.len = sizeof(own.u)};
    int client;

    accepts_start();
    client = sockets_connect(&accepts.address);
    UNTIL(atomic_load(&accepts.arrived) == 1);
    ck_assert_int_eq(getsockname(client, &own.u.sa, &own.len), 0);
    ck_assert(address_equal(&accepts.peers[0], &own));
    ck_assert_int_ne(fcntl(accepts.fds[0], F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_ne(fcntl(accepts.fds[0], F_GETFD) & FD_CLOEXEC, 0);
    sockets_say(client, "hello");
    close(client);
}

TEST(acceptor, acceptor_accepts_in_bursts_of_bounded_size)
{
    int clients[6 * ACCEPTS_BATCH];
    const unsigned last = ARRAY_LEN(clients) - 1;

    for (unsigned i = 0; i <= last; i++)
        clients[i] = sockets_connect(&accepts.address);
    accepts_start();
    UNTIL(atomic_load(&accepts.arrived) == ARRAY_LEN(clients));
    for (unsigned i = ACCEPTS_BATCH; i <= last; i++)
        ck_assert_uint_gt(accepts.turns[i],
                          accepts.turns[i - ACCEPTS_BATCH]); /* never more than a batch in a turn */
    ck_assert_uint_eq(accepts.turns[last] - accepts.turns[0] + 1, 6);
    for (unsigned i = 0; i <= last; i++)
        close(clients[i]);
}

TEST(acceptor, no_client_is_accepted_before_the_start)
{
    int client = sockets_connect(&accepts.address);

    loop_runner_stats(accepts.loop);
    PAUSE_MS(50);
    ck_assert_uint_eq(atomic_load(&accepts.arrived), 0);
    accepts_start();
    UNTIL(atomic_load(&accepts.arrived) == 1);
    close(client);
}

/* Errors that belong to the connection that was to be accepted, accept(2) names them. */
static const int passing[] = {EINTR,        ECONNABORTED, EPROTO,     EPERM,
                              ENETDOWN,     ENOPROTOOPT,  EHOSTDOWN,  ENONET,
                              EHOSTUNREACH, EOPNOTSUPP,   ENETUNREACH};

TEST_EACH(acceptor, accept_error_of_one_client_does_not_delay_the_next_client, ARRAY_LEN(passing))
{
    int client;

    fault_plan(FAULT_ACCEPT4, 0, 3, passing[_i]);
    accepts_start();
    client = sockets_connect(&accepts.address);
    UNTIL(atomic_load(&accepts.arrived) == 1);
    ck_assert_uint_eq(log_lines_with("listen test"), 0);
    close(client);
}

/* What is not known counts as a lack of something, too: it must not spin. */
static const int lacking[] = {EMFILE, ENFILE, ENOBUFS, ENOMEM, EIO};

TEST_EACH(acceptor, acceptor_without_resources_pauses_and_logs_once, ARRAY_LEN(lacking))
{
    int64_t began_at_ns = clock_now_ns();
    int client;

    fault_plan(FAULT_ACCEPT4, 0, FAULT_ALWAYS, lacking[_i]);
    accepts_start();
    client = sockets_connect(&accepts.address);
    UNTIL(fault_calls(FAULT_ACCEPT4) >= 3);       /* it tries again, but */
    ck_assert_int_ge(since_ms(began_at_ns), 200); /* only each 100 ms */
    EXPECT_LOG_LINES("cannot accept", 1);
    ck_assert_uint_eq(log_lines_with("accepting again"), 0);
    fault_plan(FAULT_ACCEPT4, 0, 0, 0);
    UNTIL(atomic_load(&accepts.arrived) == 1);
    EXPECT_LOG_LINES("cannot accept", 1);
    close(client);
}

static void fail_once_and_connect(unsigned n)
{
    int client;

    fault_plan(FAULT_ACCEPT4, 0, 1, EMFILE);
    client = sockets_connect(&accepts.address);
    UNTIL(atomic_load(&accepts.arrived) == n);
    close(client);
}

TEST(acceptor, accept_failures_close_together_are_one_logged_episode)
{
    accepts_start();
    for (unsigned n = 1; n <= 5; n++)
        fail_once_and_connect(n);
    ck_assert_uint_eq(log_lines_with("accepting again"), 0);
    UNTIL(log_lines_with("accepting again") == 1); /* after a while without another failure */
    EXPECT_LOG_LINES("cannot accept", 1);
    EXPECT_LOG_LINES(" s; errors: 5", 1);
    fail_once_and_connect(6);
    EXPECT_LOG_LINES("cannot accept", 2);
}

TEST(acceptor, episode_of_one_accept_failure_has_a_duration)
{
    accepts_start();
    fail_once_and_connect(1);
    UNTIL(log_lines_with(" s; errors: 1") == 1);
    ck_assert_uint_eq(log_lines_with("accepting again after 0.0 s"), 0);
}

TEST(acceptor, clients_wait_without_descriptors_and_are_accepted_later)
{
    int clients[10];

    accepts_start();
    for (int i = 0; i < 10; i++)
        clients[i] = socket(AF_INET, SOCK_STREAM, 0);
    process_allow_descriptors(4);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(connect(clients[i], &accepts.address.u.sa, accepts.address.len), 0);
    UNTIL(atomic_load(&accepts.arrived) == 4);
    PAUSE_MS(250);
    ck_assert_uint_eq(atomic_load(&accepts.arrived), 4);
    process_allow_any_descriptors();
    UNTIL(atomic_load(&accepts.arrived) == 10);
    EXPECT_LOG_LINES("Too many open files", 1);
    for (int i = 0; i < 10; i++)
        close(clients[i]);
}

TEST(acceptor, clients_not_admitted_stay_in_the_backlog_and_are_logged_once)
{
    int clients[5];
    unsigned calls;

    atomic_store(&accepts.admitted, 2);
    accepts_start();
    for (int i = 0; i < 5; i++)
        clients[i] = sockets_connect(&accepts.address);
    UNTIL(atomic_load(&accepts.arrived) == 2);
    UNTIL(log_lines_with("cannot accept") == 1);
    calls = fault_calls(FAULT_ACCEPT4);
    PAUSE_MS(250);
    ck_assert_uint_eq(fault_calls(FAULT_ACCEPT4), calls); /* none is accepted to be thrown out */
    atomic_store(&accepts.admitted, 5);
    UNTIL(atomic_load(&accepts.arrived) == 5);
    for (int i = 0; i < 5; i++)
        close(clients[i]);
}

TEST(acceptor, clients_refused_for_a_time_stay_in_the_backlog_that_long_without_a_log_line)
{
    int64_t began_at_ns;
    int clients[3];
    unsigned calls;

    accepts.refusal = 200 * NS_PER_MS;
    atomic_store(&accepts.admitted, 1);
    accepts_start();
    for (int i = 0; i < 3; i++)
        clients[i] = sockets_connect(&accepts.address);
    UNTIL(atomic_load(&accepts.arrived) == 1);
    calls = fault_calls(FAULT_ACCEPT4);
    began_at_ns = clock_now_ns();
    PAUSE_MS(20); /* it may have asked once more than it began to wait */
    atomic_store(&accepts.admitted, 3);
    UNTIL(atomic_load(&accepts.arrived) == 3);
    ck_assert_int_ge(since_ms(began_at_ns), 150);
    ck_assert_uint_ge(fault_calls(FAULT_ACCEPT4), calls + 2);
    ck_assert_uint_eq(log_lines_with("cannot accept"), 0);
    ck_assert_uint_eq(log_lines_with("accepting again"), 0);
    for (int i = 0; i < 3; i++)
        close(clients[i]);
}

static void resume(void *arg)
{
    (void)arg;
    acceptor_resume(accepts.acceptor);
}

static void leave_and_resume(void *arg)
{
    acceptor_leave(accepts.acceptor);
    acceptor_resume(accepts.acceptor);
    acceptor_start(accepts.acceptor, arg);
}

TEST(acceptor, owner_resumes_the_pause_that_it_asked_for)
{
    int clients[2];

    accepts.refusal = CLOCK_NEVER;
    atomic_store(&accepts.admitted, 1);
    accepts_start();
    loop_runner_call(accepts.loop, resume, NULL); /* there is no pause, and no harm */
    for (int i = 0; i < 2; i++)
        clients[i] = sockets_connect(&accepts.address);
    UNTIL(atomic_load(&accepts.arrived) == 1);
    PAUSE_MS(50);
    loop_runner_call(accepts.loop, leave_and_resume,
                     accepts.loop); /* as a limit may between two loops */
    PAUSE_MS(50);
    atomic_store(&accepts.admitted, 2);
    PAUSE_MS(200);
    ck_assert_uint_eq(atomic_load(&accepts.arrived), 1);
    loop_runner_call(accepts.loop, resume, NULL);
    UNTIL(atomic_load(&accepts.arrived) == 2);
    for (int i = 0; i < 2; i++)
        close(clients[i]);
}

TEST(acceptor, owner_cannot_resume_a_pause_for_lack_of_descriptors)
{
    int client;
    unsigned calls;

    fault_plan(FAULT_ACCEPT4, 0, FAULT_ALWAYS, EMFILE);
    accepts_start();
    client = sockets_connect(&accepts.address);
    UNTIL(log_lines_with("cannot accept") == 1);
    calls = fault_calls(FAULT_ACCEPT4);
    for (int i = 0; i < 20; i++)
        loop_runner_call(accepts.loop, resume, NULL);
    ck_assert_uint_le(fault_calls(FAULT_ACCEPT4), calls + 2);
    close(client);
}

TEST(acceptor, reservation_without_a_client_is_given_back)
{
    int client;

    accepts_start();
    client = sockets_connect(&accepts.address);
    UNTIL(atomic_load(&accepts.arrived) == 1 &&
          atomic_load(&accepts.nobody) == 1); /* EAGAIN ends the burst */
    close(client);
}

static void drain(void *arg)
{
    (void)arg;
    acceptor_drain(accepts.acceptor);
}

TEST(acceptor, drain_accepts_all_clients_queued_in_the_kernel)
{
    int clients[50];

    fault_plan(FAULT_ACCEPT4, 0, 1, EMFILE); /* the acceptor pauses */
    accepts_start();
    for (int i = 0; i < 50; i++)
        clients[i] = sockets_connect(&accepts.address);
    UNTIL(fault_calls(FAULT_ACCEPT4) > 0);
    loop_runner_call(accepts.loop, drain, NULL);
    ck_assert_uint_eq(atomic_load(&accepts.arrived), 50);
    accepts_stop();
    loop_runner_call(accepts.loop, drain, NULL); /* too late, and harmless */
    for (int i = 0; i < 50; i++)
        close(clients[i]);
}

TEST(acceptor, acceptor_of_an_ended_loop_can_be_stopped_on_any_thread)
{
    int client;

    fault_plan(FAULT_ACCEPT4, 0, FAULT_ALWAYS, EMFILE); /* even in its pause */
    accepts_start();
    client = sockets_connect(&accepts.address);
    UNTIL(fault_calls(FAULT_ACCEPT4) > 0);
    loop_runner_stop(accepts.loop);
    acceptor_stop(accepts.acceptor);
    loop_destroy(accepts.loop);
    sockets_hear_reset(client);
    close(client);
    accepts.loop = loop_runner_create();
}

TEST(acceptor, acceptor_can_be_stopped_in_its_accept_callback)
{
    int clients[5];

    accepts.stop_after = 2;
    for (int i = 0; i < 5; i++)
        clients[i] = sockets_connect(&accepts.address);
    accepts_start();
    UNTIL(atomic_load(&accepts.arrived) == 2);
    PAUSE_MS(50);
    ck_assert_uint_eq(atomic_load(&accepts.arrived), 2);
    for (int i = 2; i < 5; i++)
        sockets_hear_reset(clients[i]); /* the kernel gave them up with the listen socket */
    for (int i = 0; i < 5; i++)
        close(clients[i]);
}

TEST(acceptor, acceptor_can_be_stopped_during_a_pause)
{
    int client;
    unsigned calls;

    fault_plan(FAULT_ACCEPT4, 0, FAULT_ALWAYS, EMFILE);
    accepts_start();
    client = sockets_connect(&accepts.address);
    UNTIL(fault_calls(FAULT_ACCEPT4) > 0);
    accepts_stop();
    calls = fault_calls(FAULT_ACCEPT4);
    PAUSE_MS(250);
    ck_assert_uint_eq(fault_calls(FAULT_ACCEPT4), calls);
    close(client);
}

TEST(acceptor, acceptor_stopped_before_its_start_does_not_start)
{
    acceptor_stop(accepts.acceptor);
    accepts_start();
    ck_assert_uint_eq(atomic_load(&accepts.arrived), 0);
}

TEST_ABORTS(acceptor, destroying_an_acceptor_that_is_not_stopped_is_a_bug)
{
    acceptor_destroy(accepts.acceptor);
}

TEST(acceptor, destroying_null_is_allowed)
{
    acceptor_destroy(NULL);
}

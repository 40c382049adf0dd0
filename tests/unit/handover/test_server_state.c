/*
 * handover/server_state: what another process reports, before the start, while the server runs, and
 * after that process was killed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "handover/server_state.h"
#include "server/server.h"
#include "server/server_conf.h"
#include "server/server_parts.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/server_confs.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"
#include "upstream/upstream.h"

static struct address addresses[2], upstream_address;
static struct listener_conf listeners[2];
static struct upstream_server_conf servers[2];
static struct upstream_conf upstream = {
    .name = "back", .servers = servers, .n_servers = 2, .connect_timeout_ns = NS_PER_S};
static struct server_conf conf;
static struct server *server;
static struct server_state *state;
static int holders[2];
static char *text;
static size_t text_len;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    sockets_loopback(&upstream_address, 7);
    for (int i = 0; i < 2; i++) {
        holders[i] = sockets_bound(&addresses[i]);
        listeners[i] = (struct listener_conf){.name = i ? "front" : "echo",
                                              .addresses = &addresses[i],
                                              .n_addresses = 1,
                                              .service = i ? LISTENER_PROXY : LISTENER_ECHO,
                                              .upstream = i ? "back" : NULL,
                                              .backlog = 128,
                                              .reuseport = 1};
        servers[i] = (struct upstream_server_conf){.id = i ? "b" : "a",
                                                   .address_text = "there",
                                                   .addresses = &upstream_address,
                                                   .n_addresses = 1,
                                                   .weight = 1};
    }
    conf = (struct server_conf){SMALL_LOOPS(1),   SMALL_EXECUTORS(1),     .listeners = listeners,
                                .n_listeners = 2, .upstreams = &upstream, .n_upstreams = 1};
    ck_assert_int_eq(server_create(&server, &conf, &(struct server_events){0}), 0);
    ck_assert_int_eq(server_state_create(&state, server, ""), 0);
}

static void teardown(void)
{
    unsigned cut;

    ck_assert_int_eq(server_stop(server, &cut), 0);
    server_state_destroy(state);
    server_destroy(server);
    free(text);
    text = NULL;
    for (int i = 0; i < 2; i++)
        close(holders[i]);
}

/* Of the text, as they differ. */
static void remove_times(void)
{
    for (char *at = strstr(text, " since="); at; at = strstr(at, " since=")) {
        size_t len = strcspn(at + 1, " \n") + 1;

        memmove(at, at + len, strlen(at + len) + 1);
    }
}

static const char *write_text(void)
{
    FILE *f;

    free(text);
    f = open_memstream(&text, &text_len);
    ck_assert_ptr_nonnull(f);
    server_state_write(server, f);
    ck_assert_int_eq(fclose(f), 0);
    remove_times();
    return text;
}

static void report(const char *lines)
{
    ck_assert_int_eq(server_state_report(state, lines), 0);
    ck_assert_str_eq(server_state_text(state), lines);
}

GROUP(server_state, setup, teardown);

TEST(server_state, state_has_a_line_for_each_object)
{
    ck_assert_str_eq(write_text(), "listen echo\nlisten front\nupstream back\n"
                                   "server back/a down=no\nserver back/b down=no\n");
}

static const char all[] = "listen echo limit_waits=3 idle=1 bytes_out=9 bytes_in=8 "
                          "sessions_total=4\n"
                          "listen front sessions_total=1\n"
                          "upstream back retries=5\n"
                          "server back/a down=no client_fin=1 sessions_total=1\n"
                          "server back/b down=no\n";

TEST(server_state, tls_counters_are_continued)
{
    report("listen echo tls_refused=2 tls_full=4\nserver back/a down=no tls_resumed=3\n");
    ck_assert_ptr_nonnull(strstr(write_text(), "listen echo tls_refused=2 tls_full=4\n"));
    ck_assert_ptr_nonnull(strstr(text, "server back/a down=no tls_resumed=3\n"));
}

TEST(server_state, report_before_the_start_is_applied_at_once)
{
    report(all);
    ck_assert_str_eq(write_text(),
                     "listen echo limit_waits=3 reported=3 idle=1 bytes_out=9 bytes_in=8 "
                     "sessions_total=4\n"
                     "listen front reported=1 sessions_total=1\n"
                     "upstream back retries=5\n"
                     "server back/a down=no client_fin=1 sessions_total=1\n"
                     "server back/b down=no\n");
}

static const char *const ignored[] = {
    "\n\n\n",
    "listen\n",
    "listen echo\n",
    "listen other sessions_total=4\n",
    "upstream echo sessions_total=4\n",
    "upstream back/a sessions_total=4\n",
    "server back sessions_total=4\n",
    "server back/ sessions_total=4\n",
    "server other/a sessions_total=4\n",
    "server bac/a sessions_total=4\n",
    "later back sessions_total=4\n",
    "no lines at all",
};

TEST_EACH(server_state, unknown_lines_are_ignored, ARRAY_LEN(ignored))
{
    report(ignored[_i]);
    ck_assert_str_eq(write_text(), "listen echo\nlisten front\nupstream back\n"
                                   "server back/a down=no\nserver back/b down=no\n");
}

TEST(server_state, report_at_run_time_adds_what_it_has_more)
{
    report("listen echo sessions_total=4\nserver back/a down=no\n");
    ck_assert_int_eq(server_start(server), 0);
    report("server back/a down=no sessions_total=2\nlisten echo idle=1 sessions_total=5\n"
           "listen front sessions_total=1\n");
    report("listen front sessions_total=2\nlisten echo idle=4 sessions_total=5\n"
           "server back/a down=no sessions_total=2\n");
    UNTIL(strcmp(write_text(), "listen echo reported=1 idle=4 sessions_total=5\n"
                               "listen front reported=2 sessions_total=2\nupstream back\n"
                               "server back/a down=no reported=2 sessions_total=2\n"
                               "server back/b down=no\n") == 0);
}

static const struct task_type busy_type = {"busy", tasks_timely_run, tasks_timely_drop};

/* What was reported to us we report ourselves, also while the control loop is busy. */
TEST(server_state, a_report_on_its_way_is_in_our_own)
{
    static struct tasks_timely busy;

    ck_assert_int_eq(server_start(server), 0);
    tasks_timely_submit(&busy, &busy_type, server_parts(server).control, LOOP_CONTROL,
                        200 * NS_PER_MS);
    report(all);
    ck_assert_ptr_nonnull(strstr(write_text(), "listen echo limit_waits=3 reported=3 idle=1 "));
    ck_assert_ptr_nonnull(strstr(text, "server back/a down=no client_fin=1 sessions_total=1\n"));
}

TEST(server_state, counters_of_a_server_missing_in_a_report_continue)
{
    report("listen echo\nserver back/a down=no sessions_total=2\n");
    ck_assert_int_eq(server_state_report(state, "listen echo\n"), 0);
    report("listen echo\nserver back/a down=no idle=1 sessions_total=3\n");
    ck_assert_ptr_nonnull(
        strstr(write_text(), "server back/a down=no reported=2 idle=1 sessions_total=3\n"));
    ck_assert_int_eq(server_state_report(state, "listen echo\n"), 0);
    ck_assert_int_eq(server_state_close(state, false), 0);
    ck_assert_ptr_nonnull(
        strstr(write_text(), "server back/a down=no error=2 idle=1 sessions_total=3\n"));
}

TEST(server_state, counters_continued_by_another_process_are_not_added_twice)
{
    struct server_state *known;

    ck_assert_int_eq(server_state_create(&known, server, "listen echo sessions_total=4\n"), 0);
    ck_assert_int_eq(server_state_report(known, "listen echo sessions_total=5\n"), 0);
    ck_assert_ptr_nonnull(strstr(write_text(), "listen echo reported=1 sessions_total=1\n"));
    server_state_destroy(known);
}

TEST(server_state, sessions_of_a_killed_process_have_failed)
{
    report("listen echo idle=1 sessions_total=4\nserver back/a down=no sessions_total=2\n");
    ck_assert_int_eq(server_state_close(state, false), 0);
    ck_assert_str_eq(write_text(), "listen echo error=3 idle=1 sessions_total=4\n"
                                   "listen front\nupstream back\n"
                                   "server back/a down=no error=2 sessions_total=2\n"
                                   "server back/b down=no\n");
}

TEST(server_state, a_report_after_the_end_is_refused)
{
    unsigned cut;

    ck_assert_int_eq(server_start(server), 0);
    ck_assert_int_eq(server_stop(server, &cut), 0);
    ck_assert_int_eq(server_state_report(state, all), -ESHUTDOWN);
    ck_assert_str_eq(server_state_text(state), "");
}

static int attempt(void *cookie)
{
    struct server_state *st = NULL;
    int rc = server_state_create(&st, server, "listen echo sessions_total=1\n");

    (void)cookie;
    if (rc == 0)
        rc = server_state_report(st, all);
    if (rc == 0)
        rc = server_state_close(st, false);
    server_state_destroy(st);
    return rc;
}

TEST(server_state, failed_allocation_leaks_nothing)
{
    ck_assert_uint_ge(fault_each_allocation(attempt, NULL), 8);
}

/*
 * handover/server_settings: what an administrator set in another process holds here, before the
 * start and while the server runs, unless the configuration says something else.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/loop_group.h"
#include "handover/server_settings.h"
#include "server/server.h"
#include "server/server_conf.h"
#include "server/server_parts.h"
#include "server/server_pause.h"
#include "support/log_lines.h"
#include "support/server_confs.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"

#define LINE "there names=0 weight=1 max_connections=0 check=-:0 backup=0 disabled=0\n"

static struct address address, upstream_address;
static struct listener_conf listener;
static struct upstream_server_conf servers[2];
static struct upstream_conf upstream = {
    .name = "back", .servers = servers, .n_servers = 2, .connect_timeout_ns = NS_PER_S};
static struct server_conf conf;
static struct server *server;
static int holder;
static char *text;
static size_t text_len;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    log_set_level(LOG_LEVEL_NOTICE);
    sockets_loopback(&upstream_address, 7);
    holder = sockets_bound(&address);
    listener = (struct listener_conf){.name = "front",
                                      .addresses = &address,
                                      .n_addresses = 1,
                                      .service = LISTENER_PROXY,
                                      .upstream = "back",
                                      .backlog = 128,
                                      .quota = {.max_connections = 1000},
                                      .reuseport = 1};
    for (int i = 0; i < 2; i++)
        servers[i] = (struct upstream_server_conf){.id = i ? "b" : "a",
                                                   .address_text = "there",
                                                   .addresses = &upstream_address,
                                                   .n_addresses = 1,
                                                   .weight = 1};
    conf = (struct server_conf){SMALL_LOOPS(1),   SMALL_EXECUTORS(1),     .listeners = &listener,
                                .n_listeners = 1, .upstreams = &upstream, .n_upstreams = 1};
    ck_assert_int_eq(server_create(&server, &conf, &(struct server_events){0}), 0);
}

static void teardown(void)
{
    unsigned cut;

    ck_assert_int_eq(server_stop(server, &cut), 0);
    server_destroy(server);
    log_restore_level();
    free(text);
    text = NULL;
    close(holder);
}

static const char *write_text(void)
{
    FILE *f;

    free(text);
    f = open_memstream(&text, &text_len);
    ck_assert_ptr_nonnull(f);
    server_settings_write(server, f);
    ck_assert_int_eq(fclose(f), 0);
    return text;
}

static void use(const char *lines)
{
    ck_assert_int_eq(server_settings_use(server, lines), 0);
}

static const char all[] = "set server back/a drain,7 " LINE "set server back/b disabled,- " LINE
                          "set listener front 5 1000\n"
                          "set process io_ratio 33 50\n"
                          "set process log_level debug notice\n";

/* ${all}, a pause of the upstream for a minute, and one of the listener that is being released. */
static char *with_pauses(void)
{
    static char lines[1024];
    int64_t until_ns = clock_now_ns() + 60 * NS_PER_S;

    snprintf(lines, sizeof(lines),
             "%sset pause listener/front %" PRId64 ",0,1 -\n"
             "set pause upstream/back %" PRId64 ",9,0 -\n",
             all, until_ns, until_ns);
    return lines;
}

/* Without the digits of a pause's end, which is counted anew. */
static bool is_written(const char *lines)
{
    const char *now = write_text();

    for (; *now && *lines; now++, lines++) {
        if (*now != *lines)
            return false;
        if (strncmp(now, "/front ", 7) && strncmp(now, "/back ", 6))
            continue;
        now = strchr(now, ',');
        lines = strchr(lines, ',');
    }
    return *now == *lines;
}

GROUP(server_settings, setup, teardown);

TEST(server_settings, settings_equal_to_the_configuration_are_not_written)
{
    ck_assert_str_eq(write_text(), "");
}

TEST(server_settings, settings_reported_before_the_start_apply_at_once)
{
    const char *lines = with_pauses();

    use(lines);
    ck_assert_msg(is_written(lines), "%s is not %s", text, lines);
    ck_assert(log_lines_with("upgrade: 7 settings made by an administrator stay in force") > 0);
    ck_assert_int_eq(server_start(server), 0);
    UNTIL(log_lines_with("listen front: the pause is over") > 0); /* no client was held */
    ck_assert(server_pause_is_any(server));
}

TEST(server_settings, pause_ends_at_its_deadline)
{
    char lines[128];

    snprintf(lines, sizeof(lines), "set pause listener/front %" PRId64 ",0,0 -\n",
             clock_now_ns() + NS_PER_S);
    ck_assert_int_eq(server_start(server), 0);
    use(lines); /* by the control loop, a moment later */
    UNTIL(server_pause_is_any(server) || log_lines_with("listen front: the pause is over") > 0);
    UNTIL(log_lines_with("listen front: the pause is over") > 0);
    UNTIL(!server_pause_is_any(server));
}

TEST(server_settings, settings_reported_at_run_time_replace_all_earlier_settings)
{
    const char *lines = with_pauses();

    use("set server back/b drain,- " LINE "set process io_ratio 70 50\n");
    ck_assert_int_eq(server_start(server), 0);
    use(lines);
    UNTIL(is_written(lines));
    use("listen front sessions_total=1\nset server back/b -,2 " LINE);
    UNTIL(strcmp(write_text(), "set server back/b -,2 " LINE) == 0);
    ck_assert(!server_pause_is_any(server));
}

#define NAME "there names=1 weight=1 max_connections=0 check=-:0 backup=0 disabled=0\n"

TEST(server_settings, settings_of_one_address_of_a_name_wait_for_its_lookup)
{
    server_destroy(server);
    servers[1].names = UPSTREAM_NAME_EACH;
    servers[1].addresses = NULL;
    servers[1].n_addresses = 0;
    ck_assert_int_eq(server_create(&server, &conf, &(struct server_events){0}), 0);
    use("set server back/b@127.0.0.1:1001 drain,3 " NAME);
    ck_assert_str_eq(write_text(), "set server back/b@127.0.0.1:1001 drain,3 " NAME);
    EXPECT_LOG_LINES("upgrade: 1 settings made by an administrator stay in force", 1);
}

static const char *const forgotten[] = {
    "set server back/a drain,- elsewhere names=0 weight=1\n",
    "set server back/c drain,- " LINE,
    "set server other/a drain,- " LINE,
    "set server back/a drain,257 " LINE,
    "set server back/a drained,- " LINE,
    "set server back/a drain " LINE,
    "set listener front 5 999\n",
    "set listener other 5 1000\n",
    "set listener front many 1000\n",
    "set process io_ratio 33 51\n",
    "set process io_ratio 101 50\n",
    "set process log_level debug info\n",
    "set process log_level loud notice\n",
    "set pause listener/other 9000000000000000000,1,0 -\n",
    "set pause front 9000000000000000000,1,0 -\n",
    "set pause upstream/back soon -\n",
};

TEST_EACH(server_settings, settings_that_contradict_the_configuration_are_dropped,
          ARRAY_LEN(forgotten))
{
    use(forgotten[_i]);
    ck_assert_str_eq(write_text(), "");
    ck_assert(log_lines_with("settings made by an administrator are dropped") > 0);
}

static const char *const ignored[] = {"",           "\n",
                                      "set\n",      "set server\n",
                                      "set \n",     "set server back/a drain,-\n",
                                      "later on\n", "set pause upstream/back 1,1,0 -\n"};

TEST_EACH(server_settings, truncated_line_or_expired_pause_changes_nothing, ARRAY_LEN(ignored))
{
    use(ignored[_i]);
    ck_assert_str_eq(write_text(), "");
}

/* ---- threads = auto ---- */

static void create_scaled(unsigned min, unsigned max)
{
    unsigned cut;

    ck_assert_int_eq(server_stop(server, &cut), 0);
    server_destroy(server);
    conf.worker.threads = (struct server_workers_conf){.n = 1, .min = min, .max = max};
    ck_assert_int_eq(server_create(&server, &conf, &(struct server_events){0}), 0);
}

TEST(server_settings, number_of_workers_that_the_load_has_set_holds_within_the_limits)
{
    create_scaled(2, 4);
    use("scaled workers 3\n");
    ck_assert_str_eq(write_text(), "scaled workers 3\n");
    use("scaled workers 200\n");
    ck_assert_str_eq(write_text(), "scaled workers 4\n");
    use("scaled workers 1\n");
    ck_assert_str_eq(write_text(), "scaled workers 2\n");
    EXPECT_LOG_LINES("workers: 2 threads at the start: the process before has 1", 1);
}

TEST(server_settings, wrong_number_of_workers_changes_nothing)
{
    static const char *const wrong[] = {"scaled",           "scaled workers",
                                        "scaled workers x", "scaled workers 257",
                                        "scaled workers 0", "scaled boss 2"};

    create_scaled(1, 4);
    use("scaled workers 3\n");
    for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
        use(wrong[i]);
        ck_assert_str_eq(write_text(), "scaled workers 3\n");
    }
}

TEST(server_settings, fixed_number_of_workers_is_not_changed_by_the_load_of_another_process)
{
    use("scaled workers 3\n");
    ck_assert_str_eq(write_text(), "");
    ck_assert_uint_eq(loop_group_in_use(server_parts(server).loops), 1);
}

TEST(server_settings, number_of_an_administrator_goes_before_that_of_the_load)
{
    create_scaled(1, 4);
    use("set process workers 2 1,1,4\nscaled workers 3\n");
    ck_assert_str_eq(write_text(), "set process workers 2 1,1,4\n");
}

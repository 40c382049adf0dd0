/* handover/server_bans_state: which bans another process gets, and what is said of the others. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "handover/server_bans_state.h"
#include "server/server.h"
#include "server/server_bans.h"
#include "server/server_conf.h"
#include "support/log_lines.h"
#include "support/server_confs.h"
#include "support/sockets.h"
#include "support/suite.h"

#define MANY 20000

static struct address addresses[2];
static struct listener_conf listeners[2];
static struct server_conf conf;
static struct server *server;
static int holders[2];
static int64_t now_ns;
static const char *limits[2]; /* of the listeners */
static char *text;
static size_t text_len;

static void create(unsigned max_clients)
{
    for (int i = 0; i < 2; i++)
        listeners[i] = (struct listener_conf){
            .name = i ? "front" : "echo",
            .addresses = &addresses[i],
            .n_addresses = 1,
            .service = LISTENER_ECHO,
            .backlog = 128,
            .reuseport = 1,
            .limits = limits[i],
            .clients = {.max_clients = max_clients, .name = {.prefix_v4 = 32, .prefix_v6 = 64}},
            .ban = {.offences = 3, .window_ns = NS_PER_S, .ban_ns = NS_PER_S}};
    conf = (struct server_conf){SMALL_LOOPS(1), SMALL_EXECUTORS(1), .listeners = listeners,
                                .n_listeners = 2};
    ck_assert_int_eq(server_create(&server, &conf, &(struct server_events){0}), 0);
}

static void destroy(void)
{
    unsigned cut;

    ck_assert_int_eq(server_stop(server, &cut), 0);
    server_destroy(server);
}

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    now_ns = clock_now_ns();
    for (int i = 0; i < 2; i++)
        holders[i] = sockets_bound(&addresses[i]);
    limits[0] = limits[1] = NULL;
    create(2 * MANY);
}

static void teardown(void)
{
    destroy();
    free(text);
    text = NULL;
    for (int i = 0; i < 2; i++)
        close(holders[i]);
}

/* The ban of client ${i}, the longer the higher, begun ${i} ns after `now_ns`. */
static struct ban ban_of(uint32_t i)
{
    struct ban ban = {.block = {.len = 4, .bits = 32},
                      .offence = BAN_OFFENCE_TLS,
                      .since_ns = now_ns + i,
                      .until_ns = now_ns + 3600 * NS_PER_S + i,
                      .refused = i};
    uint32_t host = htonl(i);

    memcpy(ban.block.host, &host, sizeof(host));
    return ban;
}

/* Ban clients ${first} to ${last}. */
static void add(const char *listener, uint32_t first, uint32_t last)
{
    const struct server_bans_owner owner = {.listener = listener};
    struct server_bans_losses lost = {.no_table = 0};

    for (uint32_t i = first; i <= last; i++) {
        struct ban ban = ban_of(i);

        server_bans_add(server, &owner, &ban, 1, &lost);
    }
    ck_assert_uint_eq(lost.no_table + lost.table.full + lost.table.ended, 0);
}

static unsigned write_text(int64_t since_ns, unsigned max)
{
    FILE *f = open_memstream(&text, &text_len);
    unsigned n = server_bans_state_write(server, f, since_ns, max);

    ck_assert_int_eq(fclose(f), 0);
    return n;
}

static void use(char *bans)
{
    FILE *f = fmemopen(bans, strlen(bans), "r");

    ck_assert_ptr_nonnull(f);
    server_bans_state_use(server, f);
    fclose(f);
}

/* Number of clients that are banned as ban_of() says; others are a failure. */
static void check_one(void *cookie, const struct server_bans_owner *owner, const struct ban *ban)
{
    unsigned *n = cookie;
    struct ban wanted = ban_of((uint32_t)ban->refused);

    (void)owner;
    if (memcmp(&ban->block, &wanted.block, sizeof(wanted.block)) != 0 ||
        ban->since_ns != wanted.since_ns || ban->until_ns != wanted.until_ns ||
        ban->offence != wanted.offence)
        ck_abort_msg("another ban");
    ++*n;
}

static unsigned bans_of(const char *listener)
{
    const struct server_bans_filter filter = {.listener = listener};
    unsigned n = 0;

    ck_assert_int_eq(server_bans_each(server, &filter, check_one, &n), 0);
    return n;
}

GROUP(server_bans_state, setup, teardown);

TEST(server_bans_state, many_bans_of_each_listener_go_on_as_they_were)
{
    add("echo", 1, MANY);
    add("front", 7, 8);
    ck_assert_uint_eq(write_text(0, SERVER_BANS_STATE_MAX), MANY + 2);
    destroy();
    create(2 * MANY);
    use(text);
    ck_assert_uint_eq(bans_of("echo"), MANY);
    ck_assert_uint_eq(bans_of("front"), 2);
    ck_assert_uint_eq(log_lines_with("upgrade: "), 0);
}

TEST(server_bans_state, above_the_limit_those_with_the_most_time_left_are_handed_over)
{
    add("echo", 1, 700);
    add("front", 701, 1000);
    ck_assert_uint_eq(write_text(0, 400), 400);
    EXPECT_LOG_LINES("upgrade: 600 bans are not handed over", 1);
    destroy();
    create(2 * MANY);
    use(text);
    ck_assert_uint_eq(bans_of("echo"), 100);
    ck_assert_uint_eq(bans_of("front"), 300);
}

TEST(server_bans_state, only_bans_that_began_since_are_written)
{
    add("echo", 1, 10);
    ck_assert_uint_eq(write_text(now_ns + 8, SERVER_BANS_STATE_MAX), 3);
    free(text);
    ck_assert_uint_eq(write_text(now_ns + 11, SERVER_BANS_STATE_MAX), 0);
    ck_assert_str_eq(text, "");
}

TEST(server_bans_state, bans_that_a_smaller_table_cannot_take_are_counted)
{
    add("echo", 1, 800);
    ck_assert_uint_eq(write_text(0, SERVER_BANS_STATE_MAX), 800);
    destroy();
    create(16);
    use(text);
    ck_assert_uint_eq(bans_of("echo"), 14);
    EXPECT_LOG_LINES("upgrade: client_table_size is too small: 786 bans ended", 1);
}

TEST(server_bans_state, bans_of_a_listener_that_has_none_now_are_counted)
{
    char gone[] = "ban gone 192.0.2.1/32 0 tls 1 9000000000000000000 0\n"
                  "ban echo 192.0.2.1/32 0 tls 1 2 0\n"
                  "ban echo 192.0.2.0/24 0 tls 1 9000000000000000000 0\n";

    use(gone);
    ck_assert_uint_eq(bans_of(NULL), 0);
    EXPECT_LOG_LINES("upgrade: 3 bans ended: the time of 1 is over, 1 are of other prefixes, 1 of "
                     "listeners without bans, 0 of a dry run",
                     1);
}

/* What the listeners share in the next process, and how many bans each then has. */
static const struct {
    const char *limits[2];
    unsigned echo, front, all;
} next[] = {
    {{"all", "all"}, 300, 300, 300},   {{"other", "other"}, 300, 300, 300},
    {{"other", "all"}, 300, 300, 600}, {{NULL, "all"}, 300, 300, 600},
    {{NULL, NULL}, 300, 300, 600},
};

TEST_EACH(server_bans_state, bans_of_shared_limits_stay_whatever_the_next_process_shares,
          ARRAY_LEN(next))
{
    destroy();
    limits[0] = limits[1] = "all";
    create(2 * MANY);
    add("echo", 1, 300);
    ck_assert_uint_eq(write_text(0, SERVER_BANS_STATE_MAX), 300);
    destroy();
    memcpy(limits, next[_i].limits, sizeof(limits));
    create(2 * MANY);
    use(text);
    ck_assert_uint_eq(bans_of("echo"), next[_i].echo);
    ck_assert_uint_eq(bans_of("front"), next[_i].front);
    ck_assert_uint_eq(bans_of(NULL), next[_i].all);
    ck_assert_uint_eq(log_lines_with("upgrade: "), 0);
}

TEST(server_bans_state, ban_that_no_former_listener_takes_is_counted_once)
{
    char lines[] = "ban_share all gone\n"
                   "ban_share all echo\n"
                   "ban_share all front\n"
                   "ban limits:all 192.0.2.0/24 0 tls 1 9000000000000000000 0\n"
                   "ban limits:all 192.0.2.1/32 0 tls 1 9000000000000000000 0 dry\n"
                   "ban limits:none 192.0.2.1/32 0 tls 1 9000000000000000000 0\n";

    use(lines);
    ck_assert_uint_eq(bans_of(NULL), 0);
    EXPECT_LOG_LINES("upgrade: 3 bans ended: the time of 0 is over, 1 are of other prefixes, 1 of "
                     "listeners without bans, 1 of a dry run",
                     1);
}

static const char *const wrong[] = {
    "ban_share all\n",
    "ban_share all a123456789b123456789c123456789d123456789e123456789f123456789g123\n",
    "ban echo 192.0.2.1/32 0 tls 1 9000000000000000000 0 wet\n",
    "ban limits:a123456789b123456789c123456789d123456789e123456789f123456789g123 192.0.2.1/32 0 "
    "tls 1 9000000000000000000 0\n",
    "ban",
    "ban echo 192.0.2.1/32 0 tls 1 9000000000000000000\n",
    "bans echo 192.0.2.1/32 0 tls 1 9000000000000000000 0\n",
    "ban echo 192.0.2.1/33 0 tls 1 9000000000000000000 0\n",
    "ban echo unix 0 tls 1 9000000000000000000 0\n",
    "ban echo 192.0.2.1/32 4294967296 tls 1 9000000000000000000 0\n",
    "ban echo 192.0.2.1/32 0 sls 1 9000000000000000000 0\n",
    "ban echo 192.0.2.1/32 0 tls -1 9000000000000000000 0\n",
    "ban echo 192.0.2.1/32 0 tls 1 9300000000000000000 0\n",
    "ban echo 192.0.2.1/32 0 tls 1 9000000000000000000 0 0\n",
    "ban a123456789b123456789c123456789d123456789e123456789f123456789g123 192.0.2.1/32 0 tls 1 "
    "9000000000000000000 0\n",
};

TEST_EACH(server_bans_state, wrong_lines_are_counted_and_the_others_used, ARRAY_LEN(wrong))
{
    add("echo", 1, 1);
    ck_assert_uint_eq(write_text(0, SERVER_BANS_STATE_MAX), 1);
    destroy();
    create(16);
    text = realloc(text, text_len + 512);
    ck_assert_ptr_nonnull(text);
    strcpy(text + text_len, wrong[_i]);
    use(text);
    ck_assert_uint_eq(bans_of(NULL), 1);
    EXPECT_LOG_LINES("upgrade: 1 bans of the process before are incomplete", 1);
}

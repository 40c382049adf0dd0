/* option/option: the table agrees with itself, and each kind takes what it says it takes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "config/config.h"
#include "option/option.h"
#include "option/option_kind.h"
#include "support/options.h"
#include "support/suite.h"
#include "upstream/upstream.h"

static const struct option *row(unsigned i)
{
    for (unsigned section = 0; section < OPTION_SECTIONS; section++)
        for (unsigned n = 0; option_row(section, n); n++)
            if (i-- == 0)
                return option_row(section, n);
    return NULL;
}

GROUP(table, options_setup, options_teardown);

TEST(table, each_option_is_found_by_its_key_and_listed_once)
{
    for (unsigned section = 0; section < OPTION_SECTIONS; section++) {
        const struct option *o;

        for (unsigned i = 0; (o = option_row(section, i)) != NULL; i++)
            ck_assert_ptr_eq(option_find(section, o->key), o);
    }
    ck_assert_ptr_null(option_find(OPTION_BOSS, "io_ratio"));
    ck_assert_ptr_null(option_find(OPTION_BOSS, ""));
    ck_assert_ptr_null(option_find(OPTION_UPSTREAM, "server"));
}

TEST(table, option_family_has_many_keys)
{
    const struct option *o = option_find(OPTION_UPSTREAM, "server.ID");

    ck_assert_ptr_eq(option_find(OPTION_UPSTREAM, "server.a"), o);
    ck_assert_ptr_eq(option_find(OPTION_UPSTREAM, "server."), o);
    ck_assert_str_eq(option_member(o, "server.a.b"), "a.b");
}

TEST(table, each_option_has_its_texts)
{
    for (unsigned i = 0; row(i) != NULL; i++) {
        const struct option *o = row(i);

        ck_assert_msg(o->allowed[0] != '\0' && o->help[0] != '\0', "%s", o->key);
        ck_assert_msg(strpbrk(o->allowed, "\t\n") == NULL && strpbrk(o->help, "\t\n") == NULL, "%s",
                      o->key);
        if (o->flags & OPTION_REQUIRED)
            ck_assert_msg(o->fallback == NULL, "%s", o->key);
        else
            ck_assert_msg((o->fallback[0] == '\0') == ((o->flags & OPTION_EMPTY) != 0), "%s",
                          o->key);
    }
}

TEST(table, effect_of_a_change_is_named_as_in_the_manual)
{
    ck_assert_str_eq(option_applies_text(option_find(OPTION_REACTORD, "user")->applies), "upgrade");
    ck_assert_str_eq(option_applies_text(option_find(OPTION_LISTEN, "idle_timeout")->applies),
                     "live");
    ck_assert_str_eq(option_applies_text(option_find(OPTION_LISTEN, "pipeline")->applies),
                     "new connections");
}

TEST(table, each_default_is_allowed)
{
    for (unsigned i = 0; row(i) != NULL; i++) {
        const struct option *o = row(i);
        struct option_value v;

        if (o->flags & OPTION_REQUIRED)
            continue;
        v = options_value(o, o->key, o->fallback);
        ck_assert_msg(option_set(o, &v) == 0, "%s: %s", o->key, v.problem);
    }
}

TEST(table, empty_value_is_refused_unless_it_is_the_default)
{
    for (unsigned i = 0; row(i) != NULL; i++) {
        const struct option *o = row(i);
        struct option_value v = options_value(o, o->key, "");
        int rc = option_set(o, &v);

        ck_assert_msg(rc == (o->flags & OPTION_EMPTY ? 0 : -EINVAL), "%s", o->key);
    }
}

/* One end of `LEAST to MOST` or `0, or LEAST to MOST`, as the kind of ${o} reads it. */
static int64_t bound(const struct option *o, const char *text)
{
    int64_t ns = -1;
    uint64_t n = UINT64_MAX;

    if (o->kind == &option_kind_duration)
        ck_assert_int_eq(parse_duration(&ns, text, INT64_MAX), 0);
    else if (o->kind == &option_kind_size)
        ck_assert_int_eq(parse_size(&n, text, INT64_MAX), 0);
    else
        ck_assert_int_eq(parse_uint(&n, text, INT64_MAX), 0);
    return o->kind == &option_kind_duration ? ns : (int64_t)n;
}

static bool is_number(const struct option *o)
{
    return o->kind == &option_kind_number || o->kind == &option_kind_percent ||
           o->kind == &option_kind_duration || o->kind == &option_kind_size;
}

TEST(table, documented_range_is_the_checked_range)
{
    for (unsigned i = 0; row(i) != NULL; i++) {
        bool zero = (row(i)->flags & OPTION_ZERO) != 0;
        char least[32], most[32];
        struct option_value v;

        if (!is_number(row(i)))
            continue;
        ck_assert_int_eq(
            sscanf(row(i)->allowed, zero ? "0, or %31s to %31s" : "%31s to %31s", least, most), 2);
        ck_assert_msg(bound(row(i), least) == row(i)->min, "%s", row(i)->key);
        ck_assert_msg(bound(row(i), most) == row(i)->max, "%s", row(i)->key);
        v = options_value(row(i), row(i)->key, least);
        ck_assert_msg(option_set(row(i), &v) == 0, "%s", row(i)->key);
        v = options_value(row(i), row(i)->key, most);
        ck_assert_msg(option_set(row(i), &v) == 0, "%s", row(i)->key);
    }
}

TEST(table, zero_outside_the_range_is_allowed_and_nothing_between)
{
    ck_assert_int_eq(options_try(OPTION_WORKER, "rebuild_threshold", "0"), 0);
    ck_assert_uint_eq(options.conf.worker.rebuild_threshold, 0);
    ck_assert_int_eq(options_try(OPTION_WORKER, "rebuild_threshold", "1"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_WORKER, "rebuild_threshold", "2"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_WORKER, "rebuild_threshold", "3"), 0);
    ck_assert_uint_eq(options.conf.worker.rebuild_threshold, 3);
    ck_assert_int_eq(options_try(OPTION_WORKER, "rebuild_threshold", "1000001"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_WORKER, "stall_threshold", "0"), 0);
    ck_assert_int_eq(options.conf.worker.stall_threshold_ns, 0);
    ck_assert_int_eq(options_try(OPTION_WORKER, "stall_threshold", "9999us"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_WORKER, "stall_threshold", "10ms"), 0);
    ck_assert_int_eq(options.conf.worker.stall_threshold_ns, 10 * NS_PER_MS);
    ck_assert_int_eq(options_try(OPTION_WORKER, "stall_threshold", "61m"), -EINVAL);
}

/* Every word that can be set is in option.allowed, which is what a person gets to see. */
TEST(table, each_keyword_is_documented_and_accepted)
{
    for (unsigned i = 0; row(i) != NULL; i++) {
        for (const struct option_word *w = row(i)->words; w != NULL && w->word != NULL; w++) {
            bool is_part = strcmp(w->word, "certificate") == 0; /* of ssl */
            struct option_value v =
                options_value(row(i), row(i)->key, is_part ? "ssl, certificate" : w->word);

            ck_assert_int_eq(option_set(row(i), &v), 0);
            ck_assert_msg(strstr(row(i)->allowed, w->word) != NULL, "%s: %s", row(i)->key, w->word);
        }
    }
}

TEST(table, value_is_stored_in_its_field)
{
    ck_assert_int_eq(options_try(OPTION_BOSS, "threads", "7"), 0);
    ck_assert_uint_eq(options.conf.boss.threads, 7);
    ck_assert_int_eq(options_try(OPTION_BOSS, "accept_batch", "8"), 0);
    ck_assert_uint_eq(options.conf.boss.accept_batch, 8);
    ck_assert_int_eq(options_try(OPTION_WORKER, "io_ratio", "auto"), 0);
    ck_assert_uint_eq(options.conf.worker.io_ratio, BUDGET_RATIO_AUTO);
    ck_assert_int_eq(options_try(OPTION_WORKER, "io_ratio", "70%"), 0);
    ck_assert_uint_eq(options.conf.worker.io_ratio, 70);
    ck_assert_int_eq(options_try(OPTION_WORKER, "task_quantum", "20ms"), 0);
    ck_assert_int_eq(options.conf.worker.task_quantum_ns, 20 * NS_PER_MS);
    ck_assert_int_eq(options_try(OPTION_WORKER, "chooser", "p2c"), 0);
    ck_assert_int_eq(options.conf.worker.chooser, CHOOSER_P2C);
    ck_assert_int_eq(options_try(OPTION_EXECUTOR, "threads", "3"), 0);
    ck_assert_uint_eq(options.conf.executor.threads, 3);
    ck_assert_int_eq(options_try(OPTION_EXECUTOR, "max_pending_tasks", "17"), 0);
    ck_assert_uint_eq(options.conf.executor.max_pending_tasks, 17);
    ck_assert_int_eq(options_try(OPTION_HANDSHAKE, "threads", "0"), 0);
    ck_assert_uint_eq(options.conf.handshake.threads, 0);
    ck_assert_int_eq(options_try(OPTION_HANDSHAKE, "threads", "auto"), 0);
    ck_assert_uint_eq(options.conf.handshake.threads, TLS_HANDSHAKES_AUTO);
    ck_assert_int_eq(options_try(OPTION_HANDSHAKE, "nice", "19"), 0);
    ck_assert_uint_eq(options.conf.handshake.nice, 19);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "splice", "off"), 0);
    ck_assert_int_eq(options.conf.listener.session.splice, SPLICE_OFF);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "half_close_timeout", "2m"), 0);
    ck_assert_int_eq(options.conf.listener.session.half_close_timeout_ns, 120 * NS_PER_S);
    ck_assert_int_eq(options_try(OPTION_UPSTREAM, "retries", "0"), 0);
    ck_assert_uint_eq(options.conf.upstream.retries, 0);
    ck_assert_int_eq(options_try(OPTION_REACTORD, "log", "/var/log/x"), 0);
    ck_assert_str_eq(options.conf.config.process.log, "/var/log/x");
    ck_assert_int_eq(options_try(OPTION_REACTORD, "log_level", "debug"), 0);
    ck_assert_int_eq(options.conf.config.process.log_level, LOG_LEVEL_DEBUG);
}

TEST(table, the_name_of_an_upstream_is_kept_in_lower_case)
{
    ck_assert_int_eq(options_try(OPTION_LISTEN, "upstream", "Back.End-1"), 0);
    ck_assert_str_eq(options.conf.listener.upstream, "back.end-1");
    ck_assert_int_eq(options_try(OPTION_LISTEN, "upstream", "a b"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "upstream", "a/b"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "upstream", "a2345678901234567890123456789012"), 0);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "upstream", "a23456789012345678901234567890123"),
                     -EINVAL);
}

TEST(table, a_list_of_addresses_has_commas_and_any_blanks)
{
    ck_assert_int_eq(options_try(OPTION_LISTEN, "address", "127.0.0.1:7,[::1]:7 \t, /run/x"), 0);
    ck_assert_uint_eq(options.conf.listener.n_addresses, 3);
    ck_assert(address_is_unix(&options.conf.listener.addresses[2]));
    ck_assert_int_eq(options_try(OPTION_LISTEN, "address", "*:7"), 0);
    ck_assert_uint_eq(options.conf.listener.n_addresses, 2);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "address", "127.0.0.1:7,"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "address", ",127.0.0.1:7"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "address", "127.0.0.1:7,,[::1]:7"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "address", "127.0.0.1:7 [::1]:7"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "address", "localhost:7"), -EINVAL);
    ck_assert_uint_eq(options.conf.listener.n_addresses, 0);
}

TEST(table, range_of_ports_is_an_address_for_each)
{
    const struct address *a;

    ck_assert_int_eq(options_try(OPTION_LISTEN, "address", "127.0.0.1:7-9, *:80-81,[::1]:5-5"), 0);
    ck_assert_uint_eq(options.conf.listener.n_addresses, 8);
    a = options.conf.listener.addresses;
    ck_assert_uint_eq(address_port(&a[0]), 7);
    ck_assert_uint_eq(address_port(&a[2]), 9);
    ck_assert_uint_eq(address_port(&a[4]), 80);
    ck_assert_uint_eq(address_port(&a[6]), 81);
    ck_assert_uint_eq(address_port(&a[7]), 5);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "address", "/run/x:1-2, @a:3-4"), 0);
    ck_assert_uint_eq(options.conf.listener.n_addresses, 2);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "address", "*:65535-65535"), 0);
}

TEST(table, a_listener_has_at_most_1024_addresses)
{
    ck_assert_int_eq(options_try(OPTION_LISTEN, "address", "127.0.0.1:1-1024"), 0);
    ck_assert_uint_eq(options.conf.listener.n_addresses, 1024);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "address", "*:1-512"), 0);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "address", "127.0.0.1:1-1025"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "address", "*:1-513"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "address", "*:1-512,@x"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "address", "*:1-65535"), -EINVAL);
}

TEST(table, a_pipeline_is_a_list_of_handlers)
{
    ck_assert_int_eq(options_try(OPTION_LISTEN, "pipeline", "log"), 0);
    ck_assert_uint_eq(options.conf.listener.pipeline.n, 1);
    ck_assert_str_eq(options.conf.listener.pipeline.list[0]->name, "log");
    ck_assert_int_eq(options_try(OPTION_LISTEN, "pipeline", ""), 0);
    ck_assert_uint_eq(options.conf.listener.pipeline.n, 0);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "pipeline", "log, log"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "pipeline", "log,"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "pipeline", "gzip"), -EINVAL);
    ck_assert_uint_eq(options.conf.listener.pipeline.n, 0);
}

TEST(table, a_pipeline_keeps_its_order)
{
    ck_assert_int_eq(options_try(OPTION_LISTEN, "pipeline", "executor ,frame,\tlog, idle"), 0);
    ck_assert_uint_eq(options.conf.listener.pipeline.n, 4);
    ck_assert_str_eq(options.conf.listener.pipeline.list[0]->name, "executor");
    ck_assert_str_eq(options.conf.listener.pipeline.list[1]->name, "frame");
    ck_assert_str_eq(options.conf.listener.pipeline.list[3]->name, "idle");
}

TEST(table, an_adjustment_may_be_below_zero)
{
    const int64_t *bytes = &options.conf.listener.pipeline.frame.decoder.length_adjustment;

    ck_assert_int_eq(options_try(OPTION_LISTEN, "frame_length_adjustment", "-4"), 0);
    ck_assert_int_eq(*bytes, -4);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "frame_length_adjustment", "+2k"), 0);
    ck_assert_int_eq(*bytes, 2048);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "frame_length_adjustment", "-64m"), 0);
    ck_assert_int_eq(*bytes, -(64 << 20));
    ck_assert_int_eq(options_try(OPTION_LISTEN, "frame_length_adjustment", "-67108865"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "frame_length_adjustment", "-"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "frame_length_adjustment", "- 4"), -EINVAL);
}

TEST(table, delimiters_are_text_with_escapes)
{
    const struct frame_delimiter_list *found =
        &options.conf.listener.pipeline.frame.decoder.delimiters;

    ck_assert_int_eq(options_try(OPTION_LISTEN, "frame_delimiter", "\\n , \\r\\n,\\x2c\\0,END"), 0);
    ck_assert_uint_eq(found->n, 4);
    ck_assert_uint_eq(found->last_n, 3);
    ck_assert_uint_eq(found->list[1].len, 2);
    ck_assert_mem_eq(found->list[1].bytes, "\r\n", 2);
    ck_assert_uint_eq(found->list[2].len, 2);
    ck_assert_mem_eq(found->list[2].bytes, ",\0", 2);
    ck_assert_mem_eq(found->last, "\n\0D", 3);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "frame_delimiter", "\\0"), 0);
    ck_assert_uint_eq(found->n, 1);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "frame_length_end", ":"), 0);
    ck_assert_int_eq(options.conf.listener.pipeline.frame.decoder.length_end, ':');
    ck_assert_int_eq(options_try(OPTION_LISTEN, "frame_length_end", "\\x20"), 0);
    ck_assert_int_eq(options.conf.listener.pipeline.frame.decoder.length_end, ' ');
}

TEST(table, delimiter_has_at_most_16_bytes)
{
    ck_assert_int_eq(options_try(OPTION_LISTEN, "frame_delimiter", "0123456789abcdef"), 0);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "frame_delimiter", "0123456789abcdefg"), -EINVAL);
}

TEST(table, mode_has_three_octal_digits_or_a_zero_before_them)
{
    static const char *const bad[] = {"66", "06600", "668", "0668", "1660", "u+w"};

    ck_assert_int_eq(options_try(OPTION_LISTEN, "unix_mode", "660"), 0);
    ck_assert_int_eq(options_try(OPTION_LISTEN, "unix_mode", "0660"), 0);
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_int_eq(options_try(OPTION_LISTEN, "unix_mode", bad[i]), -EINVAL);
}

TEST(table, a_route_has_names_and_protocols_and_leads_to_an_upstream)
{
    ck_assert_int_eq(options_try(OPTION_LISTEN, "route.a",
                                 "sni:*.A.Example\talpn:h2  sni:b. alpn:Postgresql -> Back"),
                     0);
    ck_assert_uint_eq(options.conf.listener.n_routes, 1);
    ck_assert_str_eq(options.routes[0].id, "a");
    ck_assert_uint_eq(options.routes[0].n_names, 2);
    ck_assert_str_eq(options.routes[0].names[0], "*.a.example");
    ck_assert_str_eq(options.routes[0].names[1], "b");
    ck_assert_uint_eq(options.routes[0].n_protocols, 2);
    ck_assert_str_eq(options.routes[0].protocols[1], "Postgresql");
    ck_assert_str_eq(options.routes[0].upstream, "back");
    ck_assert_int_eq(options_try(OPTION_LISTEN, "route.a", ""), 0);
    ck_assert_uint_eq(options.conf.listener.n_routes, 0);
}

TEST(table, a_route_has_addresses_versions_and_first_bytes)
{
    const struct route_conf *r = options.routes;

    ck_assert_int_eq(options_try(OPTION_LISTEN, "route.a",
                                 "src:10.0.0.0/8 src:unix tls:no first:\"SSH- x\\r\\x00\" "
                                 "first:1604 -> b"),
                     0);
    ck_assert_uint_eq(r->clients.n, 2);
    ck_assert_uint_eq(r->clients.list[0].bits, 8);
    ck_assert_uint_eq(r->tls, ROUTE_TLS_NO);
    ck_assert_uint_eq(r->n_first, 2);
    ck_assert_uint_eq(r->first[0].n, 8);
    ck_assert_mem_eq(r->first[0].at, "SSH- x\r\0", 8);
    ck_assert_uint_eq(r->first[1].n, 2);
    ck_assert_mem_eq(r->first[1].at, "\x16\x04", 2);
    ck_assert_str_eq(r->upstream, "b");
}

TEST(table, a_route_has_shares)
{
    const struct route_conf *r = options.routes;

    ck_assert_int_eq(
        options_try(OPTION_LISTEN, "route.a", "sni:a -> Web 90%, canary 9.5% ,c 0.50%"), 0);
    ck_assert_uint_eq(r->n_shares, 3);
    ck_assert_str_eq(r->shares[0].upstream, "web");
    ck_assert_uint_eq(r->shares[0].until, 9000);
    ck_assert_uint_eq(r->shares[1].until, 9950);
    ck_assert_uint_eq(r->shares[2].until, ROUTE_SHARE_ALL);
    ck_assert_uint_eq(options.conf.listener.n_routes, 1);
    ck_assert_uint_eq(listener_conf_targets(&options.conf.listener), 4);
    ck_assert_str_eq(listener_conf_target(&options.conf.listener, 3), "c");
}

TEST(table, a_route_can_refuse)
{
    ck_assert_int_eq(
        options_try(OPTION_LISTEN, "route.a", "tls:1.2 tls:1.3 src:all first:\"\x16\" -> Refuse"),
        0);
    ck_assert_uint_eq(options.routes[0].tls, ROUTE_TLS_1_2 | ROUTE_TLS_1_3);
    ck_assert_uint_eq(options.routes[0].clients.n, 3);
    ck_assert_ptr_null(options.routes[0].upstream);
}

TEST(table, first_bytes_of_a_route_have_a_limit)
{
    char text[2 * ROUTE_FIRST_BYTES + 32] = "first:";

    memset(text + 6, 'a', 2 * ROUTE_FIRST_BYTES);
    strcpy(text + 6 + 2 * ROUTE_FIRST_BYTES, " -> b");
    ck_assert_int_eq(options_try(OPTION_LISTEN, "route.a", text), 0);
    strcpy(text + 6 + 2 * ROUTE_FIRST_BYTES, "aa -> b");
    ck_assert_int_eq(options_try(OPTION_LISTEN, "route.a", text), -EINVAL);
}

TEST(table, an_account_is_a_word)
{
    ck_assert_int_eq(options_try(OPTION_REACTORD, "user", "www-data"), 0);
    ck_assert_int_eq(options_try(OPTION_REACTORD, "user", "65534"), 0);
    ck_assert_int_eq(options_try(OPTION_REACTORD, "user", "svc@example.com"), 0);
    ck_assert_int_eq(options_try(OPTION_REACTORD, "user", "a b"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_REACTORD, "user", "a:b"), -EINVAL);
}

TEST(table, a_path_is_absolute_and_of_a_file)
{
    ck_assert_int_eq(options_try(OPTION_REACTORD, "pid_file", "/run/x.pid"), 0);
    ck_assert_int_eq(options_try(OPTION_REACTORD, "pid_file", "run/x.pid"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_REACTORD, "pid_file", "/run/"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_REACTORD, "log", "/"), -EINVAL);
    ck_assert_int_eq(options_try(OPTION_REACTORD, "log", "Stderr"), -EINVAL);
}

/*
 * stats/access_log_format: what lines look like, that none can be forged or get too long, and what
 * is refused.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "net/address.h"
#include "stats/access_log_format.h"
#include "stats/access_log_record.h"
#include "stats/access_log_text.h"
#include "stats/access_log_variable.h"
#include "stats/session_id.h"
#include "support/suite.h"

static struct arena *arena;
static struct access_log_format_problem problem;
static struct address client, listen_at, server_at;
static struct access_log_record record;
static char line[ACCESS_LOG_LINE_BYTES];

static struct address address_of(const char *text)
{
    struct address list[2];

    ck_assert_int_ge(address_parse(list, 2, text), 1);
    return list[0];
}

static void setup(void)
{
    ck_assert_int_eq(arena_create(&arena), 0);
    client = address_of("192.0.2.7:40001");
    listen_at = address_of("[::1]:7008");
    server_at = address_of("10.255.0.1:6379");
    record = (struct access_log_record){.time_ns = 1795262400 * NS_PER_S + 7 * NS_PER_MS,
                                        .connection = 42,
                                        .listener = "front",
                                        .upstream = "back",
                                        .sni = "a.example",
                                        .alpn = "h2",
                                        .tls_version = "TLSv1.3",
                                        .tls_resumed = "no",
                                        .tls_handshake_ns = 1500000,
                                        .server = "a",
                                        .worker = "work-2-1",
                                        .client = &client,
                                        .listen = &listen_at,
                                        .server_address = &server_at,
                                        .bytes_in = 10,
                                        .bytes_out = UINT64_MAX,
                                        .duration_ns = 61 * NS_PER_S + 1999,
                                        .queue_ns = ACCESS_LOG_RECORD_NONE_NS,
                                        .connect_ns = 250 * NS_PER_US,
                                        .first_byte_ns = 0,
                                        .tries = 2,
                                        .reason = SESSION_CLIENT_FIN};
}

static void teardown(void)
{
    arena_release(arena);
}

/* The line of `record`, without its newline. */
static const char *line_of(const char *text)
{
    const struct access_log_format *format;
    size_t len;

    ck_assert_msg(access_log_format_parse(&format, text, arena, &problem) == 0, "%s", text);
    len = access_log_format_write(format, &record, line);
    ck_assert_uint_ge(len, 1);
    ck_assert_uint_le(len, sizeof(line));
    ck_assert_int_eq(line[len - 1], '\n');
    ck_assert_ptr_eq(memchr(line, '\n', len), line + len - 1);
    line[len - 1] = '\0';
    ck_assert_uint_eq(strlen(line), len - 1);
    return line;
}

/* ---- what lines look like ---- */

GROUP(lines, setup, teardown);

TEST(lines, format_text_has_the_common_variables_in_columns)
{
    ck_assert_str_eq(line_of("text"),
                     "2026-11-21T12:00:00.007Z 42 192.0.2.7 40001 front [::1]:7008 back a "
                     "10.255.0.1:6379 10 18446744073709551615 61.000001 - 0.000250 0.000000 2 "
                     "client_fin work-2-1");
}

TEST(lines, json_is_a_fixed_list_with_null_for_missing_values)
{
    char pid[32];
    char *begin;

    line_of("json");
    snprintf(pid, sizeof(pid), "\"pid\":%d,", (int)getpid());
    begin = strstr(line, pid);
    ck_assert_ptr_nonnull(begin);
    memmove(begin, begin + strlen(pid), strlen(begin + strlen(pid)) + 1);
    ck_assert_str_eq(
        line,
        "{\"time\":\"2026-11-21T12:00:00.007Z\",\"msec\":1795262400.007,\"connection\":42,"
        "\"client\":\"192.0.2.7\",\"client_port\":40001,\"listener\":\"front\","
        "\"listen_address\":\"[::1]:7008\",\"upstream\":\"back\",\"server\":\"a\","
        "\"server_address\":\"10.255.0.1:6379\",\"bytes_in\":10,"
        "\"bytes_out\":18446744073709551615,\"duration\":61.000001,\"queue_time\":null,"
        "\"connect_time\":0.000250,\"first_byte_time\":0.000000,\"tries\":2,"
        "\"reason\":\"client_fin\",\"worker\":\"work-2-1\",\"unique_id\":null,"
        "\"proxy\":null,\"sni\":\"a.example\",\"alpn\":\"h2\",\"ja4\":null,"
        "\"tls_version\":\"TLSv1.3\",\"tls_cipher\":null,\"tls_group\":null,\"tls_resumed\":\"no\","
        "\"tls_client_name\":null,\"tls_client_fingerprint\":null,"
        "\"tls_handshake_time\":0.001500,\"tls_alert\":null,"
        "\"server_tls_alert\":null}");
}

static const struct {
    const char *format;
    const char *line;
} golden[] = {
    {"$client", "192.0.2.7"},
    {"${client}_x$$$client_port", "192.0.2.7_x$40001"},
    {"$server$server", "aa"},
    {"\"$listener\" -> ${upstream}/$server;", "\"front\" -> back/a;"},
    {"caf\xc3\xa9 $tries", "caf\xc3\xa9 2"},
    {"$unique_id", "0000000000000001fedcba9876543210"},
    {"json:tries", "{\"tries\":2}"},
    {"json: reason , client\t", "{\"reason\":\"client_fin\",\"client\":\"192.0.2.7\"}"},
    {"jsonx $tries", "jsonx 2"},
    {"text $tries", "text 2"},
    {"$client_rtt", "-"},
    {"json:client_rtt", "{\"client_rtt\":null}"},
};

TEST_EACH(lines, custom_format_is_followed, ARRAY_LEN(golden))
{
    static const struct session_id id = {.high = 1, .low = 0xfedcba9876543210};

    record.id = &id;
    ck_assert_str_eq(line_of(golden[_i].format), golden[_i].line);
}

TEST(lines, client_rtt_is_a_number_of_microseconds)
{
    static const uint64_t rtt_us = 1234;

    record.client_rtt_us = &rtt_us;
    ck_assert_str_eq(line_of("$client_rtt"), "1234");
    ck_assert_str_eq(line_of("json:client_rtt"), "{\"client_rtt\":1234}");
}

static const struct {
    const char *format;
    unsigned asks;
} asking[] = {{"text", 0},
              {"json", 0},
              {"$client $duration", 0},
              {"$client_rtt", ACCESS_LOG_ASK_CLIENT_TCP},
              {"json:client,client_retransmits,tries", ACCESS_LOG_ASK_CLIENT_TCP},
              {"$server_delivery_rate", ACCESS_LOG_ASK_SERVER_TCP},
              {"$source_address $attempts", ACCESS_LOG_ASK_SOURCE | ACCESS_LOG_ASK_ATTEMPTS},
              {"$server_bytes_in", ACCESS_LOG_ASK_TIMES},
              {"$half_closed_time $tries", ACCESS_LOG_ASK_TIMES}};

TEST_EACH(lines, format_asks_only_for_what_its_variables_need, ARRAY_LEN(asking))
{
    const struct access_log_format *format;

    ck_assert_int_eq(access_log_format_parse(&format, asking[_i].format, arena, &problem), 0);
    ck_assert_uint_eq(access_log_format_asks(format), asking[_i].asks);
}

TEST(lines, every_variable_is_in_json_under_its_name_and_can_be_missing)
{
    const char *name;

    record = (struct access_log_record){.queue_ns = -1,
                                        .connect_ns = -1,
                                        .first_byte_ns = -1,
                                        .duration_ns = 0,
                                        .reason = SESSION_OPEN};
    for (unsigned i = 0; (name = access_log_format_variable(i)); i++) {
        char format[64], key[64];

        snprintf(format, sizeof(format), "json:%s", name);
        snprintf(key, sizeof(key), "{\"%s\":", name);
        ck_assert_int_eq(strncmp(line_of(format), key, strlen(key)), 0);
        snprintf(format, sizeof(format), "<$%s>", name);
        ck_assert_uint_gt(strlen(line_of(format)), 2);
    }
}

TEST(lines, clients_of_all_families_have_an_address)
{
    client = address_of("[2001:db8::1]:9");
    ck_assert_str_eq(line_of("$client $client_port"), "2001:db8::1 9");
    client = address_of("/run/x.sock");
    ck_assert_str_eq(line_of("$client $client_port"), "/run/x.sock -");
    client = (struct address){.len = sizeof(sa_family_t), .u.sa.sa_family = AF_UNIX};
    ck_assert_str_eq(line_of("$client $client_port"), "unix: -");
    client.len = 0; /* a session that ended before it had one */
    ck_assert_str_eq(line_of("$client $client_port"), "- -");
}

TEST(lines, timestamps_advance)
{
    line_of("$time");
    record.time_ns += NS_PER_S;
    ck_assert_str_eq(line_of("$time $msec"), "2026-11-21T12:00:01.007Z 1795262401.007");
    record.time_ns -= 2 * NS_PER_S + 7 * NS_PER_MS;
    ck_assert_str_eq(line_of("$time"), "2026-11-21T11:59:59.000Z");
}

/* ---- what cannot be forged ---- */

GROUP(forging, setup, teardown);

TEST(forging, values_cannot_forge_text_columns)
{
    record.server = "a b\n\"\\\x7f\xff\t\x01"
                    "z!~";
    ck_assert_str_eq(line_of("$server $tries"), "a\\x20b\\x0a\\x22\\x5c\\x7f\\xff\\x09\\x01z!~ 2");
}

static const struct {
    const char *bytes;
    const char *json;
} utf8[] = {
    {"a\"b\\c\n\x1f\x7f", "a\\\"b\\\\c\\u000a\\u001f\\u007f"},
    {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
    {"\xc3", "\\ufffd"},                                             /* cut short */
    {"\xe2\x82x", "\\ufffd\\ufffdx"},                                /* likewise */
    {"\x80\xff", "\\ufffd\\ufffd"},                                  /* no beginning */
    {"\xc0\xaf\xe0\x80\xaf", "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd"}, /* longer than need be */
    {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},                       /* a surrogate */
    {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"},            /* above U+10FFFF */
    {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
    {"\xef\xbf\xbf\xed\x9f\xbf", "\xef\xbf\xbf\xed\x9f\xbf"},
    /* the first and the last of each length */
    {" !~", " !~"},
    {"\xc2\x80\xdf\xbf", "\xc2\x80\xdf\xbf"},
    {"\xe0\xa0\x80\xee\x80\x80", "\xe0\xa0\x80\xee\x80\x80"},
    {"\xf0\x90\x80\x80", "\xf0\x90\x80\x80"},
    {"\xf0\x8f\xbf\xbf\xf5", "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd"}, /* one less, one more */
};

TEST_EACH(forging, json_is_utf8_for_any_bytes, ARRAY_LEN(utf8))
{
    char wanted[128];

    record.server = utf8[_i].bytes;
    snprintf(wanted, sizeof(wanted), "{\"server\":\"%s\"}", utf8[_i].json);
    ck_assert_str_eq(line_of("json:server"), wanted);
}

TEST(forging, lines_of_random_bytes_have_their_columns_and_end_once)
{
    static char noise[300]; /* longer than any text may be */

    srandom(1);
    record.listener = record.upstream = record.server = record.worker = noise;
    record.sni = record.alpn = record.ja4 = noise;
    record.tls_version = record.tls_cipher = record.tls_group = record.tls_client_name = noise;
    record.tls_resumed = record.tls_client_fingerprint = record.tls_alert = noise;
    record.server_tls_alert = noise;
    client.u.sa.sa_family = AF_UNIX;
    client.len = sizeof(client.u.un);
    for (unsigned round = 0; round < 2000; round++) {
        unsigned blanks = 0, n_bad = 0;

        for (size_t i = 0; i < sizeof(noise) - 1; i++)
            noise[i] = (char)(random() % 255 + 1);
        memcpy(client.u.un.sun_path, noise, sizeof(client.u.un.sun_path));
        for (const char *c = line_of("text"); *c != '\0'; c++) {
            n_bad += *c < 0x20 || *c >= 0x7f;
            blanks += *c == ' ';
        }
        ck_assert_uint_eq(n_bad, 0);
        ck_assert_uint_eq(blanks, 17);
        line_of("json");
    }
}

TEST(forging, no_line_is_longer_than_its_format_allows_for)
{
    char longest[ADDRESS_TEXT_BYTES * 2], format[1024] = "";
    struct address path = {.len = sizeof(path.u.un), .u.un.sun_family = AF_UNIX};

    memset(longest, '\x01', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    memset(path.u.un.sun_path, '\x01', sizeof(path.u.un.sun_path));
    record.listener = record.upstream = record.server = record.worker = longest;
    record.sni = record.alpn = record.ja4 = longest;
    record.tls_version = record.tls_cipher = record.tls_group = record.tls_client_name = longest;
    record.tls_resumed = record.tls_client_fingerprint = record.tls_alert = longest;
    record.server_tls_alert = longest;
    record.client = record.listen = record.server_address = record.proxy = &path;
    record.connection = record.bytes_in = UINT64_MAX;
    record.tries = UINT_MAX;
    record.time_ns = record.duration_ns = record.queue_ns = INT64_MAX;
    ck_assert_uint_gt(strlen(line_of("json")), 3000);
    for (unsigned i = 0; i < access_log_variable_count(); i++) {
        const struct access_log_variable *v = access_log_variable_at(i);
        struct access_log_text t = {ACCESS_LOG_TEXT_JSON, line, line + sizeof(line)};

        access_log_variable_write(v, &t, &record);
        ck_assert_msg((size_t)(t.at - line) <= access_log_variable_max_bytes(v), "%s", v->name);
    }
    for (unsigned i = 0; i < 15; i++)
        strcat(format, "$client ");
    ck_assert_uint_gt(strlen(line_of(format)), 3000);
    strcat(format, "$client");
    ck_assert_int_eq(
        access_log_format_parse(&(const struct access_log_format *){NULL}, format, arena, &problem),
        -EINVAL);
    ck_assert_int_eq(problem.kind, ACCESS_LOG_FORMAT_LONG);
}

/* ---- what is refused ---- */

static const struct {
    const char *format;
    int kind;
    const char *name;
} refused[] = {
    {"", ACCESS_LOG_FORMAT_CONSTANT, ""},
    {"jsn", ACCESS_LOG_FORMAT_CONSTANT, "jsn"},
    {"costs 5$$", ACCESS_LOG_FORMAT_CONSTANT, "costs 5$$"},
    {"$clint x", ACCESS_LOG_FORMAT_UNKNOWN, "clint"},
    {"x ${foo}y", ACCESS_LOG_FORMAT_UNKNOWN, "foo"},
    {"$Client", ACCESS_LOG_FORMAT_UNKNOWN, "Client"},
    {"$client $", ACCESS_LOG_FORMAT_NO_NAME, ""},
    {"$client $ x", ACCESS_LOG_FORMAT_NO_NAME, " x"},
    {"${client", ACCESS_LOG_FORMAT_NO_NAME, "{client"},
    {"${}", ACCESS_LOG_FORMAT_NO_NAME, "{}"},
    {"json:", ACCESS_LOG_FORMAT_NO_NAME, ""},
    {"json:client,", ACCESS_LOG_FORMAT_NO_NAME, ""},
    {"json:client;tries", ACCESS_LOG_FORMAT_NO_NAME, ";tries"},
    {"json:client,clint", ACCESS_LOG_FORMAT_UNKNOWN, "clint"},
    {"json:client,tries,client", ACCESS_LOG_FORMAT_TWICE, "client"},
};

GROUP(refusals, setup, teardown);

TEST_EACH(refusals, invalid_format_is_reported, ARRAY_LEN(refused))
{
    const struct access_log_format *format;

    ck_assert_int_eq(access_log_format_parse(&format, refused[_i].format, arena, &problem),
                     -EINVAL);
    ck_assert_int_eq(problem.kind, refused[_i].kind);
    ck_assert_uint_eq(problem.len, strlen(refused[_i].name));
    ck_assert_int_eq(strncmp(problem.name, refused[_i].name, problem.len), 0);
}

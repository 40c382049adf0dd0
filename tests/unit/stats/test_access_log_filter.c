/* stats/access_log_filter: conditions, and shares of connections. */
#include "stats/access_log_filter.h"

#include "base/must.h"
#include "stats/access_log_record.h"
#include "support/suite.h"

GROUP(filter, NULL, NULL);

static const struct {
    enum access_log_only only;
    enum session_reason reason;
    uint64_t bytes_out;
    bool taken;
} cases[] = {
    {ACCESS_LOG_ALL, SESSION_OPEN, 0, true},
    {ACCESS_LOG_ALL, SESSION_LIMIT, 0, true},
    {ACCESS_LOG_ERRORS, SESSION_OPEN, 1, false},
    {ACCESS_LOG_ERRORS, SESSION_CLIENT_FIN, 1, false},
    {ACCESS_LOG_ERRORS, SESSION_UPSTREAM_FIN, 1, false},
    {ACCESS_LOG_ERRORS, SESSION_LIFETIME, 1, false},
    {ACCESS_LOG_ERRORS, SESSION_DRAIN, 1, false},
    {ACCESS_LOG_ERRORS, SESSION_KILLED, 1, false},
    {ACCESS_LOG_ERRORS, SESSION_CLIENT_RESET, 1, true},
    {ACCESS_LOG_ERRORS, SESSION_IDLE, 1, true},
    {ACCESS_LOG_ERRORS, SESSION_LIMIT, 0, true},
    {ACCESS_LOG_ERRORS, SESSION_CONNECT_REFUSED, 0, true},
    {ACCESS_LOG_DENIED, SESSION_LIMIT, 0, true},
    {ACCESS_LOG_DENIED, SESSION_CONNECT_REFUSED, 0, false},
    {ACCESS_LOG_DATA, SESSION_CLIENT_FIN, 0, false},
    {ACCESS_LOG_DATA, SESSION_CLIENT_FIN, 1, true},
    {ACCESS_LOG_DATA, SESSION_OPEN, 1, true},
};

TEST_EACH(filter, condition_chooses_lines, ARRAY_LEN(cases))
{
    const struct access_log_filter f = {.only = cases[_i].only};
    const struct access_log_record r = {.reason = cases[_i].reason,
                                        .bytes_out = cases[_i].bytes_out};

    ck_assert_int_eq(access_log_filter_takes(&f, &r), cases[_i].taken);
}

static const unsigned parts[] = {1, 2, 10, 1000};

TEST_EACH(filter, share_of_connections_is_kept_on_average, ARRAY_LEN(parts))
{
    const struct access_log_filter f = {.share = (UINT64_C(1) << 32) / parts[_i]};
    const unsigned all = 100000;
    unsigned n = 0;

    for (unsigned i = 1; i <= all; i++) {
        const struct access_log_record r = {.connection = i, .reason = SESSION_IDLE};

        n += access_log_filter_takes(&f, &r);
    }
    ck_assert_uint_ge(n, all / parts[_i] * 8 / 10);
    ck_assert_uint_le(n, (all / parts[_i] * 12 + 9) / 10);
}

TEST(filter, all_lines_of_a_connection_are_taken_or_none)
{
    const struct access_log_filter f = {.share = UINT64_C(1) << 31};

    for (unsigned i = 1; i <= 100; i++) {
        const struct access_log_record open = {.connection = i},
                                       end = {.connection = i, .reason = SESSION_IDLE};

        ck_assert_int_eq(access_log_filter_takes(&f, &open), access_log_filter_takes(&f, &end));
    }
}

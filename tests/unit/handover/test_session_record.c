/* handover/session_record: what is written is read; what is cut or impossible is refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "handover/session_record.h"
#include "service/session_state.h"
#include "stats/session_reason.h"
#include "support/sockets.h"
#include "support/suite.h"

static const uint8_t unsent[] = "bytes that the client has not taken";

/* A proxied session whose server has ended its stream, with bytes for the client. */
static struct session_state a_state(void)
{
    struct session_state st = {
        .listener = "front",
        .upstream = "back",
        .server = "one@127.0.0.1:80",
        .id = {1, 2},
        .numbers = {7, 8},
        .began_at_ns = 10,
        .expires_at_ns = CLOCK_NEVER,
        .counted_in = 3,
        .reason = SESSION_UPSTREAM_FIN,
        .has_open_line = 1,
        .n_handlers = 2,
        .handlers = {{.name = "frame", .values = {-1, 5}, .bytes = unsent, .n = sizeof(unsent)},
                     {.name = "log"}}};

    sockets_loopback(&st.client, 1234);
    st.legs[0] = (struct session_state_leg){.bytes_in = 5,
                                            .bytes_out = 6,
                                            .eof_wanted = 1,
                                            .unwritable = 1,
                                            .unsent = unsent,
                                            .n_unsent = sizeof(unsent)};
    st.legs[1] = (struct session_state_leg){.bytes_in = 41, .read_ended = 1};
    return st;
}

static uint8_t *encoded(const struct session_state *st, size_t *n)
{
    uint8_t *record;

    ck_assert_int_eq(session_record_encode(&record, n, st), 0);
    return record;
}

static int decoded(const struct session_state *st)
{
    struct session_state out;
    size_t n;
    uint8_t *record = encoded(st, &n);
    int rc = session_record_decode(&out, record, n);

    free(record);
    return rc;
}

GROUP(record, NULL, NULL);

TEST(record, a_session_is_read_as_it_was_written)
{
    struct session_state st = a_state(), out;
    size_t n;
    uint8_t *record = encoded(&st, &n);

    ck_assert_int_eq(session_record_decode(&out, record, n), 0);
    ck_assert_str_eq(out.listener, "front");
    ck_assert_str_eq(out.upstream, "back");
    ck_assert_str_eq(out.server, "one@127.0.0.1:80");
    ck_assert(address_equal(&out.client, &st.client) && out.listen.len == 0);
    ck_assert(out.id.high == 1 && out.id.low == 2 && out.numbers[1] == 8);
    ck_assert(out.began_at_ns == 10 && out.expires_at_ns == CLOCK_NEVER && out.counted_in == 3);
    ck_assert(out.reason == SESSION_UPSTREAM_FIN && out.has_open_line == 1);
    ck_assert(out.legs[0].eof_wanted && out.legs[0].unwritable && out.legs[1].read_ended);
    ck_assert_uint_eq(out.legs[0].n_unsent, sizeof(unsent));
    ck_assert_mem_eq(out.legs[0].unsent, unsent, sizeof(unsent));
    ck_assert_uint_eq(out.legs[1].n_unsent, 0);
    ck_assert_uint_eq(out.n_handlers, 2);
    ck_assert_str_eq(out.handlers[0].name, "frame");
    ck_assert(out.handlers[0].values[0] == -1 && out.handlers[0].values[1] == 5);
    ck_assert_uint_eq(out.handlers[0].n, sizeof(unsent));
    ck_assert_mem_eq(out.handlers[0].bytes, unsent, sizeof(unsent));
    ck_assert_str_eq(out.handlers[1].name, "log");
    free(record);
}

TEST(record, a_record_cut_anywhere_is_refused)
{
    struct session_state st = a_state(), out;
    size_t n;
    uint8_t *record = encoded(&st, &n);

    for (size_t cut = 0; cut < n; cut++) {
        uint8_t *part = malloc(cut + 1);

        memcpy(part, record, cut);
        ck_assert_int_eq(session_record_decode(&out, part, cut), -EMSGSIZE);
        if (cut >= 16) { /* and with a head that says so */
            uint64_t bytes = cut;

            memcpy(part + 8, &bytes, sizeof(bytes));
            ck_assert_int_lt(session_record_decode(&out, part, cut), 0);
        }
        free(part);
    }
    free(record);
}

TEST(record, a_byte_too_many_is_refused)
{
    struct session_state st = a_state(), out;
    size_t n;
    uint8_t *record = encoded(&st, &n), *longer = calloc(1, n + 1);
    uint64_t bytes = n + 1;

    memcpy(longer, record, n);
    ck_assert_int_eq(session_record_decode(&out, longer, n + 1), -EMSGSIZE);
    memcpy(longer + 8, &bytes, sizeof(bytes));
    ck_assert_int_eq(session_record_decode(&out, longer, n + 1), -EMSGSIZE);
    free(longer);
    free(record);
}

TEST(record, another_version_and_other_bytes_are_refused)
{
    struct session_state st = a_state(), out;
    size_t n;
    uint8_t *record = encoded(&st, &n);

    record[4]++;
    ck_assert_int_eq(session_record_decode(&out, record, n), -EPROTONOSUPPORT);
    record[4]--;
    record[0]++;
    ck_assert_int_eq(session_record_decode(&out, record, n), -EINVAL);
    free(record);
}

TEST(record, impossible_sessions_are_refused)
{
    struct session_state st = a_state();

    st.listener = "";
    ck_assert_int_eq(decoded(&st), -EINVAL);
    st = a_state();
    st.server = "";
    ck_assert_int_eq(decoded(&st), -EINVAL);
    st = a_state();
    st.client.len = 0;
    ck_assert_int_eq(decoded(&st), -EINVAL);
    st = a_state();
    st.client.len--;
    ck_assert_int_eq(decoded(&st), -EINVAL);
    st = a_state();
    st.reason = SESSION_REASONS;
    ck_assert_int_eq(decoded(&st), -EINVAL);
    st = a_state();
    st.began_at_ns = -1;
    ck_assert_int_eq(decoded(&st), -EINVAL);
    st = a_state();
    st.legs[0].unwritable = 2;
    ck_assert_int_eq(decoded(&st), -EINVAL);
}

TEST(record, too_many_handlers_are_refused)
{
    struct session_state st = a_state(), out;
    size_t n, at = 0;
    uint8_t *record, *less;

    st.n_handlers = 0;
    less = encoded(&st, &n);
    st.n_handlers = 1;
    record = encoded(&st, &n);
    for (at = 16; record[at] == less[at]; at++) /* `bytes` aside, they differ in n_handlers first */
        continue;
    ck_assert_uint_eq(record[at], 1);
    record[at] = PIPELINE_CONF_HANDLERS + 1;
    ck_assert_int_eq(session_record_decode(&out, record, n), -EINVAL);
    free(record);
    free(less);
}

TEST(record, impossible_ends_are_refused)
{
    struct session_state st = a_state();

    st.legs[1].read_ended = 0; /* whose end of file is it? */
    ck_assert_int_eq(decoded(&st), -EINVAL);
    st = a_state();
    st.legs[0].eof_wanted = 0;
    st.legs[0].eof_sent = 1; /* before the unsent bytes */
    ck_assert_int_eq(decoded(&st), -EINVAL);
    st.legs[0].n_unsent = st.legs[0].unwritable = 0;
    ck_assert_int_eq(decoded(&st), 0);
    st.legs[0].read_ended = 1; /* then the connection has ended */
    ck_assert_int_eq(decoded(&st), -EINVAL);
    st = a_state();
    st.upstream = st.server = ""; /* an echo has one leg */
    st.legs[0].read_ended = 1;
    ck_assert_int_eq(decoded(&st), 0);
    st.legs[1].unsent = unsent;
    st.legs[1].n_unsent = 1;
    ck_assert_int_eq(decoded(&st), -EINVAL);
}

TEST(record, texts_have_a_limit)
{
    struct session_state st = a_state();
    char name[SESSION_RECORD_TEXT_BYTES + 1] = {0};
    uint8_t *record;
    size_t n;

    memset(name, 'x', SESSION_RECORD_TEXT_BYTES - 1);
    st.listener = name;
    ck_assert_int_eq(decoded(&st), 0);
    name[SESSION_RECORD_TEXT_BYTES - 1] = 'x';
    ck_assert_int_eq(session_record_encode(&record, &n, &st), -EMSGSIZE);
}

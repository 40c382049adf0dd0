/* tls/tls_flight: which bytes are a whole message, a part of one, or no TLS. */
#include "tls/tls_flight.h"

#include <openssl/ssl.h>
#include <string.h>

#include "base/must.h"
#include "support/suite.h"

#define BYTES(text) text, sizeof(text) - 1

enum { WAITS, WHOLE, FAULT };

static const struct {
    const char *bytes;
    size_t n;
    int result;
    int alert; /* of the fault */
    bool from_server;
} firsts[] = {
    {BYTES("\x16\3\1\0\5\1\0\0\1x"), WHOLE, 0, false},
    {BYTES("\x16\3\3\0\5\2\0\0\1x"), WHOLE, 0, true},
    {BYTES("\x16\3\3\0\4\0\0\0\0"), WHOLE, 0, true}, /* HelloRequest */
    {BYTES("\x15\3\3\0\2\2\x28"), WHOLE, 0, false},
    {BYTES("\x16\3\1\0\2\1\0\x16\3\1\0\3\0\1x"), WHOLE, 0, false}, /* in two records */
    {BYTES("\x16\3\3\0\x9\2\0\0\1x\xb\0\0\0"), WHOLE, 0, true},    /* two in one record */
    {BYTES("\x16\3\3\0\xa\2\0\0\1x\xb\0\0\2y"), WHOLE, 0, true},   /* and a part of one */
    {BYTES("\x16"), WAITS, 0, false},
    {BYTES("\x16\3\1\x40"), WAITS, 0, false},
    {BYTES("\x16\3\1\x40\0\1"), WAITS, 0, false},
    {BYTES("\x16\3\1\0\4\1\1\0\0"), WAITS, 0, false},
    {BYTES("G"), FAULT, -1, false},
    {BYTES("\0"), FAULT, SSL_AD_UNEXPECTED_MESSAGE, false},
    {BYTES("\x14"), FAULT, SSL_AD_UNEXPECTED_MESSAGE, false},
    {BYTES("\x17"), FAULT, SSL_AD_UNEXPECTED_MESSAGE, true},
    {BYTES("\x80\x2e\1"), FAULT, SSL_AD_UNEXPECTED_MESSAGE, false}, /* SSLv2 */
    {BYTES("\x16\2"), FAULT, SSL_AD_PROTOCOL_VERSION, false},
    {BYTES("\x16\4"), FAULT, SSL_AD_PROTOCOL_VERSION, true},
    {BYTES("\x16\3\1\0\0"), FAULT, SSL_AD_UNEXPECTED_MESSAGE, false},
    {BYTES("\x16\3\1\x40\1"), FAULT, SSL_AD_RECORD_OVERFLOW, false},
    {BYTES("\x15\3\3\0\3"), FAULT, SSL_AD_DECODE_ERROR, false},
    {BYTES("\x16\3\1\0\5\2\0\0\x40x"), FAULT, SSL_AD_UNEXPECTED_MESSAGE, false},
    {BYTES("\x16\3\1\0\5\1\0\0\x40x"), FAULT, SSL_AD_UNEXPECTED_MESSAGE, true},
    {BYTES("\x16\3\1\0\5\1\2\0\1x"), FAULT, SSL_AD_ILLEGAL_PARAMETER, false},
    {BYTES("\x16\3\1\0\2\1\0\x16\3\1\0\0"), FAULT, SSL_AD_UNEXPECTED_MESSAGE, false},
};

GROUP(flight, NULL, NULL);

static void expect(const struct tls_flight *f, bool is_whole, unsigned i)
{
    int result = f->fault ? FAULT : is_whole ? WHOLE : WAITS;

    ck_assert_int_eq(result, firsts[i].result);
    if (result == FAULT)
        ck_assert_int_eq(f->fault->alert, firsts[i].alert);
}

TEST_EACH(flight, first_flight_is_whole_incomplete_or_faulty, ARRAY_LEN(firsts))
{
    struct tls_flight f = {.accepts = !firsts[_i].from_server};

    expect(&f, tls_flight_scan(&f, (const uint8_t *)firsts[_i].bytes, firsts[_i].n), (unsigned)_i);
}

TEST_EACH(flight, first_flight_is_judged_alike_byte_by_byte, ARRAY_LEN(firsts))
{
    struct tls_flight f = {.accepts = !firsts[_i].from_server};
    bool is_whole = false;

    for (size_t n = 1; n <= firsts[_i].n && !is_whole && !f.fault; n++)
        is_whole = tls_flight_scan(&f, (const uint8_t *)firsts[_i].bytes, n);
    expect(&f, is_whole, (unsigned)_i);
}

static const struct {
    const char *bytes;
    size_t n;
    bool is_broken;
} laters[] = {
    {BYTES("\x17\3\3\x48\0x"), false},   {BYTES("\x14\3\3\0\1\1"), false},
    {BYTES("\x16\3\3\0\0"), false},      {BYTES("\x18\3\3\0\1"), true},
    {BYTES("\x17\4\3\0\1"), true},       {BYTES("\x17\3\3\x48\1"), true},
    {BYTES("GET / HTTP/1.1\r\n"), true},
};

TEST_EACH(flight, later_flight_with_a_broken_header_is_given_to_the_library, ARRAY_LEN(laters))
{
    static const uint8_t hello[] = {0x16, 3, 1, 0, 5, 1, 0, 0, 1, 'x'};
    struct tls_flight f = {.accepts = true};

    ck_assert(tls_flight_scan(&f, hello, sizeof(hello)));
    tls_flight_take(&f);
    ck_assert_int_eq(tls_flight_scan(&f, (const uint8_t *)laters[_i].bytes, laters[_i].n),
                     laters[_i].is_broken);
    ck_assert_int_eq(f.is_broken, laters[_i].is_broken);
    if (f.is_broken)
        ck_assert_uint_eq(f.records_end, laters[_i].n);
    ck_assert_ptr_null(f.fault);
}

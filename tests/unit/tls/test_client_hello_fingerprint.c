/* tls/ja4: the fingerprint of a ClientHello. */
#include <string.h>

#include "support/hello_builder.h"
#include "support/hellos.h"
#include "support/suite.h"
#include "tls/client_hello.h"
#include "tls/ja4.h"

GROUP(fingerprint, NULL, NULL);

/* Source: the example of https://github.com/FoxIO-LLC/ja4/blob/main/technical_details/JA4.md */
TEST(fingerprint, example_of_the_ja4_specification_is_reproduced)
{
    static const uint16_t ciphers[] = {0x1a1a, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f,
                                       0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014,
                                       0x009c, 0x009d, 0x002f, 0x0035};
    static const uint16_t types[] = {0x1a1a, 0x001b, 0x0033, 0x4469, 0x0017, 0x002d, 0x0005,
                                     0x0023, 0x0012, 0x002b, 0xff01, 0x000b, 0x000a, 0x0015};
    struct client_hello hello;
    char ja4[JA4_BYTES];
    size_t at;

    hello_builder_begin(ARRAY_LEN(ciphers));
    for (size_t i = 0; i < ARRAY_LEN(ciphers); i++) {
        hello_builder.built[46 + 2 * i] = (uint8_t)(ciphers[i] >> 8);
        hello_builder.built[47 + 2 * i] = (uint8_t)ciphers[i];
    }
    at = hello_builder.built_bytes;
    hello_builder_put(2, 0);
    hello_builder_put_bytes("\0\0\0\6\0\4\0\0\1a\0\x10\0\5\0\3\2h2", 19);
    hello_builder_put_bytes("\0\x0d\0\x12\0\x10\4\3\x08\4\4\1\5\3\x08\5\5\1\x08\6\6\1", 22);
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        hello_builder_put(2, types[i]);
        hello_builder_put(2, types[i] == 0x2b ? 7 : 0);
        if (types[i] == 0x2b)
            hello_builder_put_bytes("\6\x3a\x3a\3\4\3\3", 7);
    }
    hello_builder_end_extensions(at);
    ck_assert_int_eq(
        hello_builder_read_hello(&hello, hello_builder.built, hello_builder.built_bytes), 0);
    ja4_write(ja4, &hello);
    ck_assert_str_eq(ja4, "t13d1516h2_8daaf6152771_e5627efa2ab1");
    client_hello_free(&hello);
}

/* Source: the same, "ALPN Extension Value". */
static const struct {
    const char *name, *text;
} protocols[] = {
    {"h2", "h2"},
    {"http/1.1", "h1"},
    {"x", "xx"},
    {"\xab", "ab"},
    {"\xab\xcd", "ad"},
    {"0\xab", "3b"},
    {"01\xab\xcd", "3d"},
    {"0\xab\xcd"
     "1",
     "01"},
};

TEST_EACH(fingerprint, protocol_is_abbreviated_to_its_first_and_last_character,
          ARRAY_LEN(protocols))
{
    size_t n = strlen(protocols[_i].name), at;
    struct client_hello hello;
    char ja4[JA4_BYTES];

    hello_builder_begin(1);
    at = hello_builder.built_bytes;
    hello_builder_put(2, 0);
    hello_builder_put(2, 16);
    hello_builder_put(2, n + 3);
    hello_builder_put(2, n + 1);
    hello_builder_put(1, n);
    hello_builder_put_bytes(protocols[_i].name, n);
    hello_builder_end_extensions(at);
    ck_assert_int_eq(
        hello_builder_read_hello(&hello, hello_builder.built, hello_builder.built_bytes), 0);
    ja4_write(ja4, &hello);
    ck_assert_mem_eq(ja4 + 8, protocols[_i].text, 2);
    client_hello_free(&hello);
}

/* handlers/frame_decoder: whole frames, however they come, and exactly the bad ones left out. */
#include <check.h>

#include "support/frame_model.h"
#include "support/framed.h"
#include "support/suite.h"

/* ---- against the model: every split of every stream ---- */

struct vector {
    const char *what;
    struct frame_decoder_conf conf;
    const char *stream;
    size_t len;
};

#define ONE(bytes)                                                           \
    {                                                                        \
        .n = 1, .last_n = 1, .list = {{sizeof(bytes) - 1, bytes}}, .last = { \
            (bytes)[sizeof(bytes) - 2]                                       \
        }                                                                    \
    }
#define MIXED                                                                                 \
    {                                                                                         \
        .n = 3, .last_n = 2, .list = {{2, "ab"}, {3, "cab"}, {2, "bd"}}, .last = { 'b', 'd' } \
    }
#define TEXT .by = FRAME_DECODER_TEXT_LENGTH, .length_end = ' '

static const struct vector vectors[] = {
    {"plain", {.max_length = 64, .length_width = 2}, STREAM("\0\3abc\0\0\0\1d\0\2ef")},
    {"a field of 1", {.max_length = 64, .length_width = 1}, STREAM("\1a\0\2bc")},
    {"a field of 3", {.max_length = 64, .length_width = 3}, STREAM("\0\0\1a\0\0\2bc")},
    {"a field of 4", {.max_length = 64, .length_width = 4}, STREAM("\0\0\0\1a\0\0\0\2bc")},
    {"a field of 8",
     {.max_length = 64, .length_width = 8},
     STREAM("\0\0\0\0\0\0\0\1a\0\0\0\0\0\0\0\0")},
    {"little end first",
     {.max_length = 600, .length_width = 2, .byte_order = FRAME_DECODER_LITTLE},
     STREAM("\3\0abc\1\0d\0\0")},
    {"bytes before the field, and stripped",
     {.max_length = 64, .length_offset = 2, .length_width = 1, .strip = 3},
     STREAM("XY\3abcXY\0XY\1d")},
    {"the field counts the whole frame",
     {.max_length = 64, .length_width = 2, .length_adjustment = -2},
     STREAM("\0\5abc\0\2\0\3d")},
    {"a trailer that the field does not count",
     {.max_length = 64, .length_width = 1, .length_adjustment = 2},
     STREAM("\1aXY\0XY")},
    {"longest", {.max_length = 5, .length_width = 2}, STREAM("\0\3abc\0\3def")},
    {"too long, at once",
     {.max_length = 5, .length_width = 2, .fail_fast = true},
     STREAM("\0\4abcd\0\1e\0\7abcdefg\0\2hi")},
    {"too long, when it is gone",
     {.max_length = 5, .length_width = 2},
     STREAM("\0\4abcd\0\1e\0\7abcdefg\0\2hi")},
    {"too long without end, at once",
     {.max_length = 5, .length_width = 4, .fail_fast = true},
     STREAM("\377\377\377\377abcdefgh")},
    {"too long without end",
     {.max_length = 9, .length_width = 8, .length_adjustment = 64 << 20},
     STREAM("\177\377\377\377\377\377\377\377abcdefgh")},
    {"negative, then good",
     {.max_length = 64, .length_width = 8, .fail_fast = true},
     STREAM("\377\377\377\377\377\377\377\377\0\0\0\0\0\0\0\1a")},
    {"negative, told as late as it can be",
     {.max_length = 64, .length_width = 8},
     STREAM("\200\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1a")},
    {"shorter than its header",
     {.max_length = 64, .length_width = 2, .length_adjustment = -2, .fail_fast = true},
     STREAM("\0\1\0\0\0\3a\0\1\0\4bc")},
    {"shorter than what is stripped, once and again",
     {.max_length = 64, .length_width = 1, .strip = 3, .fail_fast = true},
     STREAM("\1a\0\3abc\1b\2cd")},
    {"shorter than what is stripped, told late",
     {.max_length = 64, .length_width = 1, .strip = 3},
     STREAM("\1a\0\3abc\1b\2cd")},
    {"text", {TEXT, .max_length = 64}, STREAM("5 hello11 hello world1 x3 ab")},
    {"text, stripped", {TEXT, .max_length = 64, .strip_length = true}, STREAM("5 hello1 x2 yz")},
    {"netstrings",
     {.by = FRAME_DECODER_TEXT_LENGTH, .length_end = ':', .max_length = 64, .length_adjustment = 1},
     STREAM("5:hello,1:x,12:hello, world,")},
    {"text, the length counts its header and another byte",
     {TEXT, .max_length = 64, .length_adjustment = -3, .fail_fast = true},
     STREAM("5 ab3 2 4 c")},
    {"text, too long, at once",
     {TEXT, .max_length = 12, .fail_fast = true},
     STREAM("10 0123456789"
            "9 012345678"
            "1 x9999999999 y")},
    {"text, too long, when it is gone",
     {TEXT, .max_length = 12},
     STREAM("10 0123456789"
            "9 012345678"
            "1 x9999999999 y")},
    {"text, no number, at once",
     {TEXT, .max_length = 64, .fail_fast = true},
     STREAM("05 ab3 cd 2 ef 4x 1 g12345678901 2 hi  1 j-1 k")},
    {"text, no number, when it is gone",
     {TEXT, .max_length = 64},
     STREAM("05 ab3 cd 2 ef 4x 1 g12345678901 2 hi  1 j-1 k")},
    {"lines", {DELIMITED, .max_length = 64, .delimiters = LINES}, STREAM("ab\ncd\r\n\r\n\n\re\nf")},
    {"lines, stripped",
     {DELIMITED, .max_length = 64, .delimiters = LINES, .strip_delimiter = true},
     STREAM("ab\ncd\r\n\r\n\n\re\nf")},
    {"a delimiter of several bytes, begun and not ended",
     {DELIMITED, .max_length = 64, .delimiters = ONE("aab"), .strip_delimiter = true},
     STREAM("aaab"
            "aacaab"
            "aab"
            "aa")},
    {"delimiters that overlap",
     {DELIMITED, .max_length = 64, .delimiters = MIXED, .strip_delimiter = true},
     STREAM("xcab"
            "xab"
            "bd"
            "xbd"
            "abd"
            "cabb")},
    {"lines, longest", {DELIMITED, .max_length = 4, .delimiters = LINES}, STREAM("abc\nab\r\nd")},
    {"lines too long, at once",
     {DELIMITED, .max_length = 4, .delimiters = LINES, .fail_fast = true},
     STREAM("abcd\nab\r\nabcdefgh\r\na\nbcdef")},
    {"lines too long, when they are gone",
     {DELIMITED, .max_length = 4, .delimiters = LINES, .strip_delimiter = true},
     STREAM("abcd\nab\r\nabcdefgh\r\na\nbcdef")},
    {"a delimiter over the end of the longest frame",
     {DELIMITED, .max_length = 4, .delimiters = ONE("0123456789abcdef"), .fail_fast = true},
     STREAM("xy0123456789abcdefx0123456789abcdef012")},
    {"a delimiter over the end of the longest frame, told late",
     {DELIMITED, .max_length = 4, .delimiters = ONE("0123456789abcdef")},
     STREAM("xy0123456789abcdefx0123456789abcdef012")},
    {"a delimiter that begins again over the end of the longest frame",
     {DELIMITED, .max_length = 3, .delimiters = ONE("aab")},
     STREAM("aaab"
            "xaaaab"
            "aab")},
};

static size_t whole(void *cookie, size_t left)
{
    (void)cookie;
    return left;
}

static size_t bytewise(void *cookie, size_t left)
{
    (void)cookie;
    return left < 1 ? left : 1;
}

/* One piece up to a position, and one behind it. */
static size_t split(void *cookie, size_t left)
{
    size_t *first = cookie, n = *first;

    *first = 0;
    return n > 0 && n < left ? n : left;
}

/* Three pieces. */
struct cuts {
    size_t at[2];
    unsigned n;
};

static size_t cut(void *cookie, size_t left)
{
    struct cuts *c = cookie;
    size_t n = c->n < ARRAY_LEN(c->at) ? c->at[c->n++] : left;

    return n > 0 && n < left ? n : left;
}

static struct frame_model model(const struct vector *v)
{
    return (struct frame_model){
        .conf = v->conf, .stream = (const uint8_t *)v->stream, .len = v->len};
}

GROUP(frame_decoder, NULL, framed_teardown);

TEST_EACH(frame_decoder, a_stream_is_the_same_frames_at_every_split, ARRAY_LEN(vectors))
{
    struct frame_model m = model(&vectors[_i]);

    frame_model_check(&m, whole, NULL);
    frame_model_check(&m, bytewise, NULL);
    for (size_t at = 1; at < m.len; at++) {
        size_t first = at;

        frame_model_check(&m, split, &first);
        for (size_t second = 1; second < m.len - at; second++) {
            struct cuts c = {.at = {at, second}};

            frame_model_check(&m, cut, &c);
        }
    }
}

TEST(frame_decoder, frame_after_a_short_frame_is_found)
{
    static const struct frame_decoder_conf conf = {
        .max_length = 64, .length_width = 1, .strip = 3, .fail_fast = true};

    ck_assert_str_eq(framed_found(&conf, STREAM("\1a\4abcd\0\3efg")), "B<cd>B<g>");
    ck_assert(frame_decoder_is_between(&framed.decoder));
}

TEST(frame_decoder, frame_after_a_bad_frame_is_found_in_the_same_read)
{
    static const struct frame_decoder_conf late = {.max_length = 4, .length_width = 1, .strip = 1};

    ck_assert_str_eq(framed_found(&late, STREAM("\1a\5abcde\2bc\4abcd\0")), "<a>L<bc>L<>");
}

TEST(frame_decoder, long_frame_is_reported_at_once_or_with_its_last_byte)
{
    static const struct frame_decoder_conf fast = {.max_length = 4,
                                                   .length_width = 1,
                                                   .strip = 1,
                                                   .fail_fast = true},
                                           late = {.max_length = 4, .length_width = 1, .strip = 1};

    ck_assert_str_eq(framed_found(&fast, STREAM("\7")), "L");
    ck_assert(!frame_decoder_is_between(&framed.decoder));
    ck_assert_str_eq(framed_found(&fast, STREAM("abcdefg\1h")), "<h>");
    ck_assert_str_eq(framed_found(&late, STREAM("\7abcdef")), "");
    ck_assert_str_eq(framed_found(&late, STREAM("g")), "L");
    ck_assert_str_eq(framed_found(&late, STREAM("\1h")), "<h>");
}

#define BY_HAND(conf, stream, wanted)                                 \
    do {                                                              \
        ck_assert_str_eq(framed_found(conf, STREAM(stream)), wanted); \
        frame_decoder_clear(&framed.decoder);                         \
    } while (0)

TEST(frame_decoder, text_lengths_by_hand)
{
    static const struct frame_decoder_conf whole = {TEXT, .max_length = 20, .fail_fast = true},
                                           stripped = {TEXT, .max_length = 20,
                                                       .strip_length = true},
                                           netstring = {.by = FRAME_DECODER_TEXT_LENGTH,
                                                        .length_end = ':',
                                                        .max_length = 20,
                                                        .length_adjustment = 1};

    BY_HAND(&whole, "5 hello11 hello world3 ab", "<5 hello><11 hello world>");
    BY_HAND(&stripped, "5 hello11 hello world1 x", "<hello><hello world><x>");
    BY_HAND(&netstring, "5:hello,1:x,", "<5:hello,><1:x,>");
    BY_HAND(&whole,
            "17 01234567890123456"
            "18 012345678901234567"
            "1 x",
            "<17 01234567890123456>L<1 x>");
    BY_HAND(&whole, "12345", "");
    BY_HAND(&whole, "9999999999 x", "L");
    BY_HAND(&whole, "12345678901", "X");
    BY_HAND(&whole, "0 1 x", "X<1 x>");
    BY_HAND(&whole, "01 1 x", "X<1 x>");
    BY_HAND(&whole, " 1 x", "X<1 x>");
    BY_HAND(&whole, "+1 1 x", "X<1 x>");
    BY_HAND(&whole, "1x", "X");
    BY_HAND(&stripped, "1xyz", ""); /* told when its end has come */
    BY_HAND(&stripped, "1xyz 1 a", "X<a>");
}

TEST(frame_decoder, delimiters_by_hand)
{
    static const struct frame_decoder_conf
        lines = {DELIMITED, .max_length = 8, .delimiters = LINES, .fail_fast = true},
        stripped = {DELIMITED, .max_length = 8, .delimiters = LINES, .strip_delimiter = true},
        crlf = {DELIMITED, .max_length = 8, .delimiters = ONE("\r\n"), .strip_delimiter = true},
        mixed = {DELIMITED, .max_length = 8, .delimiters = MIXED, .strip_delimiter = true};

    BY_HAND(&lines, "ab\ncd\r\nef", "<ab\n><cd\r\n>");
    BY_HAND(&stripped, "ab\ncd\r\n\n\r\nef", "<ab><cd><><>");
    BY_HAND(&crlf, "ab\ncd\r\r\n", "<ab\ncd\r>");
    BY_HAND(&mixed,
            "xcab"
            "xab"
            "xbd"
            "abd",
            "<x><x><x><>");
    BY_HAND(&lines,
            "1234567\n"
            "12345678",
            "<1234567\n>L");
    BY_HAND(&lines, "123456789\nab\n", "L<ab\n>");
    BY_HAND(&stripped, "12345678", "");
    BY_HAND(&stripped, "12345678\nab\n", "L<ab>");
    BY_HAND(&stripped, "123456\r\n1234567\r\nab\n", "<123456>L<ab>");
    ck_assert_str_eq(framed_found(&lines, STREAM("12345678")), "L");
    ck_assert(!frame_decoder_is_between(&framed.decoder));
    ck_assert_str_eq(framed_found(&lines, STREAM("9")), "");
    ck_assert(!frame_decoder_is_between(&framed.decoder));
    ck_assert_str_eq(framed_found(&lines, STREAM("\n")), "");
    ck_assert(frame_decoder_is_between(&framed.decoder));
}

/* As much of what is discarded is kept as may begin a delimiter, however it comes. */
TEST(frame_decoder, decoder_keeps_the_last_bytes_of_a_discarded_frame)
{
    static const struct frame_decoder_conf conf = {DELIMITED, .max_length = 4,
                                                   .delimiters = ONE("0123456789abcdef")};
    struct frame_decoder_bytes out, in = {.data = (const uint8_t *)"xxxx", .len = 4};

    ck_assert_int_eq(frame_decoder_next(&framed.decoder, &conf, &in, &out), FRAME_DECODER_MORE);
    for (const char *part = "yyyyyyyy01234567"
                            "89abcde";
         *part; part++) {
        in = (struct frame_decoder_bytes){(const uint8_t *)part, 1};
        ck_assert_int_eq(frame_decoder_next(&framed.decoder, &conf, &in, &out), FRAME_DECODER_MORE);
        ck_assert_uint_le(framed.decoder.tail_bytes, sizeof(framed.decoder.tail));
    }
    ck_assert_mem_eq(framed.decoder.tail, "0123456789abcde", sizeof(framed.decoder.tail));
    in = (struct frame_decoder_bytes){(const uint8_t *)"f", 1};
    ck_assert_int_eq(frame_decoder_next(&framed.decoder, &conf, &in, &out), FRAME_DECODER_LONG);
}

TEST(frame_decoder, a_length_that_overflows_is_too_long_and_not_negative)
{
    static const struct frame_decoder_conf conf = {
        .max_length = 64, .length_width = 8, .length_adjustment = 64 << 20, .fail_fast = true};

    ck_assert_str_eq(framed_found(&conf, STREAM("\177\377\377\377\377\377\377\377a")), "L");
    ck_assert_uint_eq(framed.decoder.discard_bytes, (uint64_t)INT64_MAX + (64 << 20) + 8 - 9);
}

/* handlers/frame_decoder: what it copies, keeps in memory and searches again. */
#include <check.h>

#include "base/clock.h"
#include "support/frame_model.h"
#include "support/framed.h"
#include "support/suite.h"

GROUP(frame_decoder, NULL, framed_teardown);

TEST(frame_decoder, a_frame_that_lies_in_the_input_is_not_copied)
{
    static const struct frame_decoder_conf conf = {.max_length = 64, .length_width = 1};
    static const uint8_t stream[] = "\3abc\1d";
    struct frame_decoder_bytes in = {stream, 6}, out;

    ck_assert_int_eq(frame_decoder_next(&framed.decoder, &conf, &in, &out), FRAME_DECODER_FRAME);
    ck_assert_ptr_eq(out.data, stream);
    ck_assert_int_eq(frame_decoder_next(&framed.decoder, &conf, &in, &out), FRAME_DECODER_FRAME);
    ck_assert_ptr_eq(out.data, stream + 4);
    ck_assert_ptr_null(framed.decoder.piece);
}

TEST(frame_decoder, partial_frame_allocates_no_more_than_the_received_bytes_need)
{
    static const struct frame_decoder_conf conf = {
        .max_length = 64 << 20, .length_width = 4, .strip = 4};

    ck_assert_str_eq(framed_found(&conf, STREAM("\3\0\0\0abc")), "");
    ck_assert_uint_eq(framed.decoder.piece_bytes, 7);
    ck_assert_uint_le(framed.decoder.piece_capacity, 256);
    ck_assert(!frame_decoder_is_between(&framed.decoder));
    frame_decoder_clear(&framed.decoder);
    ck_assert_str_eq(framed_found(&conf, STREAM("\0\0\0\1")), "");
    ck_assert_str_eq(framed_found(&conf, STREAM("a")), "<a>");
    ck_assert_ptr_null(framed.decoder.piece);
}

TEST(frame_decoder, lines_that_lie_in_the_input_are_not_copied)
{
    static const struct frame_decoder_conf conf = {DELIMITED, .max_length = 64, .delimiters = LINES,
                                                   .strip_delimiter = true};
    static const uint8_t stream[] = "ab\r\ncd\n";
    struct frame_decoder_bytes in = {stream, 7}, out;

    ck_assert_int_eq(frame_decoder_next(&framed.decoder, &conf, &in, &out), FRAME_DECODER_FRAME);
    ck_assert_ptr_eq(out.data, stream);
    ck_assert_uint_eq(out.len, 2);
    ck_assert_int_eq(frame_decoder_next(&framed.decoder, &conf, &in, &out), FRAME_DECODER_FRAME);
    ck_assert_ptr_eq(out.data, stream + 4);
    ck_assert_int_eq(frame_decoder_next(&framed.decoder, &conf, &in, &out), FRAME_DECODER_MORE);
    ck_assert_ptr_null(framed.decoder.piece);
}

TEST(frame_decoder, an_input_without_delimiters_takes_no_more_than_the_longest_frame)
{
    static const struct frame_decoder_conf conf = {DELIMITED, .max_length = 1000,
                                                   .delimiters = LINES};
    static const uint8_t stream[999];

    for (unsigned i = 0; i < 10; i++) {
        struct frame_decoder_bytes in = {stream, sizeof(stream)}, out;

        ck_assert_int_eq(frame_decoder_next(&framed.decoder, &conf, &in, &out), FRAME_DECODER_MORE);
        ck_assert_uint_le(framed.decoder.piece_capacity, i == 0 ? 1000 : 0);
        ck_assert(!frame_decoder_is_between(&framed.decoder));
    }
}

/* The CPU time of a frame of ${len} bytes that come one by one, the least of three. */
static int64_t bytewise_ns(const struct frame_decoder_conf *conf, size_t len)
{
    int64_t least = INT64_MAX;

    for (unsigned turn = 0; turn < 3; turn++) {
        int64_t begin = clock_thread_ns(), took;
        size_t frames = 0;

        for (size_t i = 0; i < len; i++) {
            struct frame_decoder_bytes in = {(const uint8_t *)(i + 1 < len ? "x" : "\n"), 1}, out;

            frames += frame_decoder_next(&framed.decoder, conf, &in, &out) == FRAME_DECODER_FRAME;
        }
        took = clock_thread_ns() - begin;
        ck_assert_uint_eq(frames, 1);
        least = took < least ? took : least;
    }
    return least;
}

TEST(frame_decoder, frame_received_byte_by_byte_is_searched_in_linear_time)
{
    static const struct frame_decoder_conf conf = {DELIMITED, .max_length = 1 << 20,
                                                   .delimiters = LINES};

    /* 16 times as much: 16 if linear, 256 if quadratic. */
    ck_assert_int_lt(bytewise_ns(&conf, 1 << 18), 64 * bytewise_ns(&conf, 1 << 14));
}

/* The CPU time of ${len} bytes of empty lines in one input, the least of three. */
static int64_t empty_lines_ns(const struct frame_decoder_conf *conf, size_t len)
{
    uint8_t *stream = malloc(len);
    int64_t least = INT64_MAX;

    ck_assert_ptr_nonnull(stream);
    memset(stream, '\n', len);
    for (unsigned turn = 0; turn < 3; turn++) {
        struct frame_decoder_bytes in = {stream, len}, out;
        int64_t begin = clock_thread_ns(), took;
        size_t frames = 0;

        while (frame_decoder_next(&framed.decoder, conf, &in, &out) == FRAME_DECODER_FRAME)
            frames++;
        took = clock_thread_ns() - begin;
        ck_assert_uint_eq(frames, len);
        least = took < least ? took : least;
    }
    free(stream);
    return least;
}

TEST(frame_decoder, missing_delimiter_is_not_searched_again_in_each_frame)
{
    static const struct frame_decoder_conf conf = {
        DELIMITED, .max_length = 1 << 20,
        .delimiters = {.n = 2, .last_n = 2, .list = {{1, "\n"}, {1, "z"}}, .last = {'z', '\n'}}};

    ck_assert_int_lt(empty_lines_ns(&conf, 1 << 18), 64 * empty_lines_ns(&conf, 1 << 14));
}

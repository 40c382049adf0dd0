/* handlers/frame_decoder: whole frames, however they come, and exactly the bad ones left out. */
#include <check.h>
#include <stdio.h>

#include "support/frame_model.h"
#include "support/suite.h"

/* ---- against the model: every split of every stream ---- */

struct vector {
    const char *what;
    struct frame_decoder_conf conf;
    const char *stream;
    size_t len;
};

#define STREAM(text) (text), sizeof(text) - 1

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

START_TEST(a_stream_is_the_same_frames_at_every_split)
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
END_TEST

/* ---- by hand, so that the model is not believed alone ---- */

static struct frame_decoder d;

/* What it finds: a frame as it is, in <>, and bad ones as letters. */
static const char *found(const struct frame_decoder_conf *conf, const char *stream, size_t len)
{
    static const char letters[] = {[FRAME_DECODER_NEGATIVE] = 'N',
                                   [FRAME_DECODER_SHORT] = 'S',
                                   [FRAME_DECODER_LONG] = 'L',
                                   [FRAME_DECODER_BARE] = 'B',
                                   [FRAME_DECODER_NO_MEMORY] = 'M'};
    static char text[256];
    struct frame_decoder_bytes in = {(const uint8_t *)stream, len}, out;
    enum frame_decoder_result result;
    size_t n = 0;

    while ((result = frame_decoder_next(&d, conf, &in, &out)) != FRAME_DECODER_MORE) {
        if (result == FRAME_DECODER_FRAME)
            n += (size_t)sprintf(text + n, "<%.*s>", (int)out.len, (const char *)out.data);
        else
            n += (size_t)sprintf(text + n, "%c", letters[result]);
        if (result == FRAME_DECODER_NO_MEMORY)
            break;
    }
    text[n] = '\0';
    return text;
}

static void teardown(void)
{
    frame_decoder_clear(&d);
}

START_TEST(a_frame_that_lies_in_the_input_is_not_copied)
{
    static const struct frame_decoder_conf conf = {.max_length = 64, .length_width = 1};
    static const uint8_t stream[] = "\3abc\1d";
    struct frame_decoder_bytes in = {stream, 6}, out;

    ck_assert_int_eq(frame_decoder_next(&d, &conf, &in, &out), FRAME_DECODER_FRAME);
    ck_assert_ptr_eq(out.data, stream);
    ck_assert_int_eq(frame_decoder_next(&d, &conf, &in, &out), FRAME_DECODER_FRAME);
    ck_assert_ptr_eq(out.data, stream + 4);
    ck_assert_ptr_null(d.piece);
}
END_TEST

START_TEST(only_the_part_of_a_frame_takes_memory_and_only_what_has_come)
{
    static const struct frame_decoder_conf conf = {
        .max_length = 64 << 20, .length_width = 4, .strip = 4};

    ck_assert_str_eq(found(&conf, STREAM("\3\0\0\0abc")), "");
    ck_assert_uint_eq(d.piece_bytes, 7);
    ck_assert_uint_le(d.piece_room, 256);
    ck_assert(!frame_decoder_is_between(&d));
    frame_decoder_clear(&d);
    ck_assert_str_eq(found(&conf, STREAM("\0\0\0\1")), "");
    ck_assert_str_eq(found(&conf, STREAM("a")), "<a>");
    ck_assert_ptr_null(d.piece);
}
END_TEST

START_TEST(after_a_short_frame_the_next_one_is_found)
{
    static const struct frame_decoder_conf conf = {
        .max_length = 64, .length_width = 1, .strip = 3, .fail_fast = true};

    ck_assert_str_eq(found(&conf, STREAM("\1a\4abcd\0\3efg")), "B<cd>B<g>");
    ck_assert(frame_decoder_is_between(&d));
}
END_TEST

START_TEST(what_is_behind_a_bad_frame_does_not_wait_for_the_next_read)
{
    static const struct frame_decoder_conf late = {.max_length = 4, .length_width = 1, .strip = 1};

    ck_assert_str_eq(found(&late, STREAM("\1a\5abcde\2bc\4abcd\0")), "<a>L<bc>L<>");
}
END_TEST

START_TEST(a_long_frame_is_told_at_once_or_with_its_last_byte)
{
    static const struct frame_decoder_conf fast = {.max_length = 4,
                                                   .length_width = 1,
                                                   .strip = 1,
                                                   .fail_fast = true},
                                           late = {.max_length = 4, .length_width = 1, .strip = 1};

    ck_assert_str_eq(found(&fast, STREAM("\7")), "L");
    ck_assert(!frame_decoder_is_between(&d));
    ck_assert_str_eq(found(&fast, STREAM("abcdefg\1h")), "<h>");
    ck_assert_str_eq(found(&late, STREAM("\7abcdef")), "");
    ck_assert_str_eq(found(&late, STREAM("g")), "L");
    ck_assert_str_eq(found(&late, STREAM("\1h")), "<h>");
}
END_TEST

START_TEST(a_length_that_overflows_is_too_long_and_not_negative)
{
    static const struct frame_decoder_conf conf = {
        .max_length = 64, .length_width = 8, .length_adjustment = 64 << 20, .fail_fast = true};

    ck_assert_str_eq(found(&conf, STREAM("\177\377\377\377\377\377\377\377a")), "L");
    ck_assert_uint_eq(d.discard_bytes, (uint64_t)INT64_MAX + (64 << 20) + 8 - 9);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("handlers/frame_decoder");
    TCase *tc = suite_group(suite, "frame decoder");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_loop_test(tc, a_stream_is_the_same_frames_at_every_split, 0, ARRAY_LEN(vectors));
    tcase_add_test(tc, a_frame_that_lies_in_the_input_is_not_copied);
    tcase_add_test(tc, only_the_part_of_a_frame_takes_memory_and_only_what_has_come);
    tcase_add_test(tc, after_a_short_frame_the_next_one_is_found);
    tcase_add_test(tc, what_is_behind_a_bad_frame_does_not_wait_for_the_next_read);
    tcase_add_test(tc, a_long_frame_is_told_at_once_or_with_its_last_byte);
    tcase_add_test(tc, a_length_that_overflows_is_too_long_and_not_negative);
    return suite_run(suite);
}

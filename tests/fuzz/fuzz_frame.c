/*
 * Fuzz handlers/frame_decoder: in whatever pieces a stream comes, it finds what a look at the whole
 * finds.
 */
#include "support/frame_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * The first bytes are the settings, one is the seed of how long pieces are, and the rest is the
 * stream.
 */
struct settings {
    uint8_t max_length[2];
    uint8_t offset;
    uint8_t width;
    uint8_t adjustment[2];
    uint8_t strip;
    uint8_t flags;
    uint8_t seed;
};

static const unsigned widths[] = {1, 2, 3, 4, 8};

/* Chosen by the bits of a settings byte. */
static const struct {
    const char *bytes;
    size_t len;
} delimiters[] = {{"\n", 1},   {"\r\n", 2}, {"\0", 1},
                  {"aa", 2},   {"aab", 3},  {"0123456789abcdef", 16},
                  {"\n\n", 2}, {"ba", 2}};

static void set_delimiters(struct frame_delimiter_list *list, uint8_t chosen)
{
    for (unsigned i = 0; i < ARRAY_LEN(delimiters); i++)
        if (chosen & 1u << i)
            frame_delimiter_add(list, (const uint8_t *)delimiters[i].bytes, delimiters[i].len);
    if (list->n == 0)
        frame_delimiter_add(list, (const uint8_t *)"\n", 1);
}

static size_t piece(void *cookie, size_t left)
{
    uint32_t *state = cookie;
    size_t n;

    *state = *state * 1664525 + 1013904223; /* Numerical Recipes, 7.1 */
    n = *state >> 24;
    n = n < 128 ? 1 + n % 4 : n - 127;
    return n < left ? n : left;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame_model m = {.len = 0};
    struct settings s;
    uint32_t state;

    if (size < sizeof(s))
        return 0;
    memcpy(&s, data, sizeof(s));
    m.conf = (struct frame_decoder_conf){
        .max_length = 1u + s.max_length[0] + 256u * s.max_length[1],
        .length_offset = s.offset % 16,
        .length_width = widths[s.width % ARRAY_LEN(widths)],
        .length_adjustment = (int16_t)(s.adjustment[0] | s.adjustment[1] << 8),
        .strip = s.strip,
        .byte_order = s.flags & 1 ? FRAME_DECODER_LITTLE : FRAME_DECODER_BIG,
        .fail_fast = s.flags & 2};
    if (s.flags & 4)
        m.conf.length_adjustment *= 1 << 11; /* to the ends of what is allowed */
    if (s.flags & 8)
        m.conf.by = s.flags & 16 ? FRAME_DECODER_DELIMITER : FRAME_DECODER_TEXT_LENGTH;
    m.conf.length_end = s.offset & 16 ? ':' : ' ';
    m.conf.strip_length = m.conf.strip_delimiter = s.flags & 32;
    set_delimiters(&m.conf.delimiters, s.width);
    if (m.conf.by == FRAME_DECODER_TEXT_LENGTH && m.conf.max_length < FRAME_DECODER_TEXT_BYTES)
        return 0;
    if (m.conf.length_offset + m.conf.length_width > m.conf.max_length ||
        m.conf.strip > m.conf.max_length)
        return 0;
    m.stream = data + sizeof(s);
    m.len = size - sizeof(s);
    state = s.seed;
    frame_model_check(&m, piece, &state);
    return 0;
}

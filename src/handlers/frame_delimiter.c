#include "handlers/frame_delimiter.h"

#include <stdbool.h>
#include <string.h>

#include "base/must.h"

/*
 * Size of a search block: otherwise each frame would search the whole input for a rare last byte.
 */
#define FRAME_DELIMITER_STEP_BYTES 256

void frame_delimiter_add(struct frame_delimiter_list *list, const uint8_t *bytes, size_t len)
{
    struct frame_delimiter *added = &list->list[list->n];

    MUST(list->n < FRAME_DELIMITER_MAX && len > 0 && len <= FRAME_DELIMITER_BYTES);
    added->len = (uint8_t)len;
    memcpy(added->bytes, bytes, len);
    list->n++;
    if (!memchr(list->last, bytes[len - 1], list->last_n))
        list->last[list->last_n++] = bytes[len - 1];
}

struct frame_delimiter_search {
    const struct frame_delimiter_list *list;
    const uint8_t *data;
    size_t len;
    size_t next[FRAME_DELIMITER_MAX]; /* for each of `last`: next position, or end of the search */
};

/* First position in the block ${from} to ${end} where a delimiter may end; ${end}: none. */
static size_t frame_delimiter_next_in_block(struct frame_delimiter_search *s, size_t from,
                                            size_t end)
{
    for (unsigned i = 0; i < s->list->last_n; i++) {
        size_t begin = s->next[i] > from ? s->next[i] : from;

        if (begin < end) {
            const uint8_t *at = memchr(s->data + begin, s->list->last[i], end - begin);

            if (at)
                end = (size_t)(at - s->data);
            s->next[i] = end;
        }
    }
    return end;
}

/* First position from ${from} on where a delimiter may end; ${s}->len: none. */
static size_t frame_delimiter_next_last(struct frame_delimiter_search *s, size_t from)
{
    size_t step = s->list->last_n == 1 ? s->len : FRAME_DELIMITER_STEP_BYTES;
    size_t at = from, end = from;

    while (at == end && end < s->len) {
        end = s->len - end < step ? s->len : end + step;
        at = frame_delimiter_next_in_block(s, at, end);
    }
    return at;
}

static bool frame_delimiter_ends_with(const struct frame_delimiter *delimiter,
                                      const uint8_t *before_end, const uint8_t *data, size_t end)
{
    size_t within = delimiter->len < end ? delimiter->len : end;
    size_t earlier = delimiter->len - within;

    return memcmp(data + end - within, delimiter->bytes + earlier, within) == 0 &&
           (earlier == 0 || memcmp(before_end - earlier, delimiter->bytes, earlier) == 0);
}

struct frame_delimiter_match frame_delimiter_find(const struct frame_delimiter_list *list,
                                                  const uint8_t *before, size_t before_len,
                                                  const uint8_t *data, size_t len)
{
    struct frame_delimiter_search search = {.list = list, .data = data, .len = len};
    const uint8_t *before_end = before_len > 0 ? before + before_len : NULL;
    struct frame_delimiter_match match = {.end = 0};

    for (;;) {
        size_t at = frame_delimiter_next_last(&search, match.end);

        if (at == len)
            break;
        match.end = at + 1;
        for (unsigned i = 0; i < list->n; i++) {
            const struct frame_delimiter *d = &list->list[i];

            if (d->len > match.len && d->len <= before_len + match.end &&
                frame_delimiter_ends_with(d, before_end, data, match.end))
                match.len = d->len;
        }
        if (match.len > 0)
            return match;
    }
    return (struct frame_delimiter_match){.end = 0};
}

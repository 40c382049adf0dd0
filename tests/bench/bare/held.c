#include "bare/held.h"

#include "common/die.h"

#include <stdlib.h>
#include <string.h>

struct held *held_new(const uint8_t *data, size_t len)
{
    struct held *h = malloc(sizeof(*h) + len);

    if (!h)
        die_errno("malloc");
    h->sent_bytes = 0;
    h->len_bytes = len;
    memcpy(h->data, data, len);
    return h;
}

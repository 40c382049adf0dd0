/* Fuzz net/address: what is taken is written so that it is taken again, as the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "net/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void again(const struct address *a)
{
    struct address b[2];
    char text[ADDRESS_TEXT_BYTES];

    MUST(address_format(text, sizeof(text), a) == text);
    MUST(address_parse(b, 2, text) == 1);
    MUST(address_equal(a, &b[0]));
    MUST(a->len == b[0].len);
    MUST(address_covers(a, &b[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct address a[2];
    char *word = strndup((const char *)data, size);
    int n;

    MUST(word != NULL);
    n = address_parse_target(a, 2, word);
    MUST(n <= 2 && n != 0);
    for (int i = 0; i < n; i++)
        again(&a[i]);
    free(word);
    return 0;
}

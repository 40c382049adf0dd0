/* Fuzz base/parse: an error changes nothing, and what is taken keeps to the maximum. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Any value that no parser gives by chance. */
#define UNTOUCHED 0x5eed5eed

static void numbers(const char *word, uint64_t max)
{
    uint64_t n = UNTOUCHED, bytes = UNTOUCHED;
    int rc = parse_uint(&n, word, max);

    MUST(rc == 0 ? n <= max : n == UNTOUCHED);
    MUST(rc == 0 || rc == -EINVAL || rc == -ERANGE);
    rc = parse_size(&bytes, word, max);
    MUST(rc == 0 ? bytes <= max : bytes == UNTOUCHED);
    MUST(rc == 0 || rc == -EINVAL || rc == -ERANGE);
}

static void durations(const char *word, int64_t max_ns)
{
    int64_t ns = UNTOUCHED;
    int rc = parse_duration(&ns, word, max_ns);

    MUST(rc == 0 ? ns >= 0 && ns <= max_ns : ns == UNTOUCHED);
    MUST(rc == 0 || rc == -EINVAL || rc == -ERANGE);
}

static void small(const char *word)
{
    unsigned percent = UNTOUCHED;
    bool truth = false;
    int rc = parse_percent(&percent, word);

    MUST(rc == 0 ? percent <= 100 : percent == UNTOUCHED);
    rc = parse_bool(&truth, word);
    MUST(rc == 0 || !truth);
}

/* The first 8 bytes are the maximum, the rest is the word. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t max;
    char *word;

    if (size < sizeof(max))
        return 0;
    memcpy(&max, data, sizeof(max));
    word = strndup((const char *)data + sizeof(max), size - sizeof(max));
    MUST(word != NULL);
    numbers(word, max);
    durations(word, (int64_t)(max >> 1));
    small(word);
    free(word);
    return 0;
}

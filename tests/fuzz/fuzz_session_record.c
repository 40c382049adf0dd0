/*
 * Fuzz handover/session_record: whatever another process sends, texts and bytes lie within the
 * record, and what is taken is written again with the same bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "handover/session_record.h"
#include "service/session_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void is_within(const uint8_t *data, size_t size, const void *at, size_t n)
{
    const uint8_t *first = at;

    MUST(first >= data && n <= size && first + n <= data + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct session_state st;
    uint8_t *record = calloc(1, size + 1), *again; /* a copy: reading past its end is seen */
    size_t n;

    MUST(record);
    if (size > 0)
        memcpy(record, data, size);
    if (session_record_decode(&st, record, size) == 0) {
        is_within(record, size, st.listener, strlen(st.listener) + 1);
        is_within(record, size, st.upstream, strlen(st.upstream) + 1);
        is_within(record, size, st.server, strlen(st.server) + 1);
        for (unsigned i = 0; i < ARRAY_LEN(st.legs); i++)
            is_within(record, size, st.legs[i].unsent, st.legs[i].n_unsent);
        for (unsigned i = 0; i < st.n_handlers; i++) {
            is_within(record, size, st.handlers[i].name, strlen(st.handlers[i].name) + 1);
            is_within(record, size, st.handlers[i].bytes, st.handlers[i].n);
        }
        MUST(session_record_encode(&again, &n, &st) == 0);
        MUST(n == size && memcmp(again, record, n) == 0);
        free(again);
    }
    free(record);
    return 0;
}

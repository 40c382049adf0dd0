/*
 * Fuzz service/session_postgres: what a client of PostgreSQL sends before TLS. One verdict however
 * the bytes come; nothing behind an SSLRequest is taken, and no byte that was not sent.
 *
 * The decoder is a static function, and the stage needs a session: so its file is included here.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/handler.h"

static int note_answer(struct handler *h, const void *data, size_t len);

#define session_postgres_stage fuzz_postgres_stage
#define handler_write          note_answer
#include "service/session_postgres.c"
#undef handler_write

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char answers[256];
static size_t n_answers;

static int note_answer(struct handler *h, const void *data, size_t len)
{
    (void)h;
    MUST(n_answers + len <= sizeof(answers));
    memcpy(answers + n_answers, data, len);
    n_answers += len;
    return 0;
}

/* As the preface handler does it: with all bytes so far, each time that some come. */
static int decode(const uint8_t *data, size_t size, size_t step, struct session_postgres *o)
{
    int rc = -EAGAIN;

    *o = (struct session_postgres){0};
    n_answers = 0;
    for (size_t len = 1; rc == -EAGAIN && len <= size; len += step) {
        uint8_t *part = malloc(len);

        MUST(part != NULL);
        memcpy(part, data, len);
        rc = session_postgres_decode(&o->reader, part, len);
        MUST(rc <= (int)len);
        free(part);
    }
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct session_postgres o;
    int rc = decode(data, size, 1, &o);

    MUST(n_answers == 0 || answers[0] == 'N' || answers[0] == 'S' || answers[0] == 'E');
    if (rc > 0 && !o.cancels && data[0] != POSTGRES_TLS_BYTE)
        MUST(answers[n_answers - 1] == 'S' && rc <= 2 * POSTGRES_REQUEST_BYTES);
    if (rc == 0 && !o.cancels)
        MUST(n_answers == 0 && data[0] == POSTGRES_TLS_BYTE);
    if (size > 0 && decode(data, size, size, &o) != -EAGAIN)
        MUST(n_answers <= sizeof(postgres_refusal) + 1);
    return 0;
}

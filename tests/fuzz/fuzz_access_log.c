/*
 * Fuzz stats/access_log_format: the first line of the input is a format, the rest a value. A line
 * fits and ends once, whatever they are; of a format that is refused the place that is wrong is in
 * it.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/must.h"
#include "net/address.h"
#include "stats/access_log_format.h"
#include "stats/access_log_record.h"
#include "stats/session_id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_line(const struct access_log_format *format, const char *value)
{
    char line[ACCESS_LOG_LINE_BYTES];
    struct address path = {.len = sizeof(path.u.un), .u.un.sun_family = AF_UNIX};
    const struct session_id id = {.high = strlen(value), .low = UINT64_MAX};
    const struct access_log_record r = {.listener = value,
                                        .upstream = value,
                                        .server = value,
                                        .worker = value,
                                        .client = &path,
                                        .listen = &path,
                                        .server_address = &path,
                                        .id = &id,
                                        .time_ns = INT64_MAX,
                                        .connection = UINT64_MAX,
                                        .bytes_in = UINT64_MAX,
                                        .bytes_out = UINT64_MAX,
                                        .duration_ns = INT64_MAX,
                                        .queue_ns = ACCESS_LOG_RECORD_NONE_NS,
                                        .first_byte_ns = INT64_MAX,
                                        .reason = SESSION_CLIENT_FIN};
    size_t len;

    strncpy(path.u.un.sun_path, value, sizeof(path.u.un.sun_path) - 1);
    len = access_log_format_write(format, &r, line);
    MUST(len > 0 && len <= sizeof(line));
    MUST(memchr(line, '\n', len) == line + len - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);
    char *value;
    const struct access_log_format *format;
    struct access_log_format_problem problem;
    struct arena *arena;
    int rc;

    MUST(text != NULL && arena_create(&arena) == 0);
    value = text + strcspn(text, "\n");
    if (*value == '\n')
        *value++ = '\0';
    rc = access_log_format_parse(&format, text, arena, &problem);
    if (rc == 0)
        write_line(format, value);
    else
        MUST(rc == -EINVAL && problem.name >= text && problem.name + problem.len <= value);
    arena_release(arena);
    free(text);
    return 0;
}

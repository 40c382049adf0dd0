#include "tls/client_hello.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_HEADER_BYTES  5
#define RECORD_MAX_BYTES     16384
#define RECORD_HANDSHAKE     22
#define MESSAGE_HEADER_BYTES 4
#define MESSAGE_CLIENT_HELLO 1
#define RANDOM_BYTES         32
#define SESSION_ID_MAX_BYTES 32

enum client_hello_extension {
    EXTENSION_SERVER_NAME = 0,
    EXTENSION_SIGNATURE_ALGORITHMS = 13,
    EXTENSION_ALPN = 16,
    EXTENSION_PRE_SHARED_KEY = 41,
    EXTENSION_SUPPORTED_VERSIONS = 43
};

#define EXTENSION_SET_WORDS (65536 / 64)

/* ---- records ---- */

/*
 * Return the length of the record's fragment. The second byte of its version is ignored (RFC 8446,
 * 5.1).
 */
static int client_hello_check_record(const uint8_t *at, size_t have)
{
    if (at[0] != RECORD_HANDSHAKE || (have > 1 && at[1] != 3))
        return -ENOMSG;
    if (have < RECORD_HEADER_BYTES)
        return -EAGAIN;
    return at[3] << 8 | at[4];
}

static int client_hello_begin_record(struct client_hello_scan *scan, const uint8_t *data,
                                     size_t len)
{
    int n;

    if (scan->at == len)
        return -EAGAIN;
    n = client_hello_check_record(data + scan->at, len - scan->at);
    if (n == -ENOMSG && scan->records > 0)
        return -EPROTO; /* not a handshake record, although the message is incomplete */
    if (n < 0)
        return n;
    if (n == 0 || n > RECORD_MAX_BYTES)
        return -EPROTO;
    if (scan->at + RECORD_HEADER_BYTES + (size_t)n > CLIENT_HELLO_MAX_BYTES)
        return -EMSGSIZE;
    scan->at += RECORD_HEADER_BYTES;
    scan->record_bytes = (size_t)n;
    scan->records++;
    return 0;
}

/* Scan one byte of the message header: | type: 1 | length: 3 |. */
static int client_hello_scan_header(struct client_hello_scan *scan, uint8_t byte)
{
    if (scan->header == 0 && byte != MESSAGE_CLIENT_HELLO)
        return -EPROTO;
    if (scan->header > 0)
        scan->message_bytes = scan->message_bytes << 8 | byte;
    scan->header++;
    return scan->header == MESSAGE_HEADER_BYTES &&
                   scan->at + scan->message_bytes > CLIENT_HELLO_MAX_BYTES
               ? -EMSGSIZE
               : 0;
}

static int client_hello_scan_fragment(struct client_hello_scan *scan, const uint8_t *data,
                                      size_t len)
{
    size_t n = len - scan->at;
    int rc = 0;

    if (n > scan->record_bytes)
        n = scan->record_bytes;
    scan->record_bytes -= n;
    for (; rc == 0 && n > 0 && scan->header < MESSAGE_HEADER_BYTES; n--)
        rc = client_hello_scan_header(scan, data[scan->at++]);
    if (rc < 0)
        return rc;
    if (scan->header < MESSAGE_HEADER_BYTES)
        return 0;
    if (n + scan->record_bytes > scan->message_bytes)
        return -EPROTO; /* another message follows in the record */
    scan->at += n;
    scan->message_bytes -= n;
    return 0;
}

static bool client_hello_is_whole(const struct client_hello_scan *scan)
{
    return scan->header == MESSAGE_HEADER_BYTES && scan->message_bytes == 0;
}

int client_hello_scan(struct client_hello_scan *scan, const uint8_t *data, size_t len)
{
    int rc = 0;

    MUST(scan->at <= len);
    while (rc == 0 && !client_hello_is_whole(scan)) {
        if (scan->record_bytes == 0)
            rc = client_hello_begin_record(scan, data, len);
        else if (scan->at == len)
            rc = -EAGAIN;
        else
            rc = client_hello_scan_fragment(scan, data, len);
    }
    return rc < 0 ? rc : (int)scan->at;
}

/* ---- the message ---- */

static bool client_hello_take(struct client_hello_bytes *from, size_t n,
                              struct client_hello_bytes *out)
{
    if (from->n < n)
        return false;
    *out = (struct client_hello_bytes){from->at, n};
    from->at += n;
    from->n -= n;
    return true;
}

static bool client_hello_take_number(struct client_hello_bytes *from, unsigned bytes, unsigned *out)
{
    struct client_hello_bytes digits;

    if (!client_hello_take(from, bytes, &digits))
        return false;
    *out = 0;
    for (unsigned i = 0; i < bytes; i++)
        *out = *out << 8 | digits.at[i];
    return true;
}

/* Take a length of ${prefix} bytes, and then as many bytes as it says. */
static bool client_hello_take_vector(struct client_hello_bytes *from, unsigned prefix,
                                     struct client_hello_bytes *out)
{
    unsigned n;

    return client_hello_take_number(from, prefix, &n) && client_hello_take(from, n, out);
}

bool client_hello_next_16(struct client_hello_bytes *list, uint16_t *out)
{
    unsigned number;

    if (!client_hello_take_number(list, 2, &number))
        return false;
    *out = (uint16_t)number;
    return true;
}

uint16_t client_hello_highest(const struct client_hello *hello)
{
    struct client_hello_bytes list = hello->versions;
    uint16_t highest = list.n > 0 ? 0 : hello->version, version;

    while (client_hello_next_16(&list, &version))
        if (!client_hello_is_grease(version) && version > highest)
            highest = version;
    return highest;
}

bool client_hello_next_extension(struct client_hello_bytes *list, uint16_t *type)
{
    struct client_hello_bytes data;

    return client_hello_next_16(list, type) && client_hello_take_vector(list, 2, &data);
}

bool client_hello_alpn_next(struct client_hello_bytes *list, struct client_hello_bytes *out)
{
    return client_hello_take_vector(list, 1, out);
}

/* Read ${data}: one vector of two-byte numbers. */
static int client_hello_read_numbers(struct client_hello_bytes *data, unsigned prefix,
                                     struct client_hello_bytes *out)
{
    if (!client_hello_take_vector(data, prefix, out) || data->n > 0 || out->n == 0 ||
        out->n % 2 != 0)
        return -EPROTO;
    return out->n / 2 > CLIENT_HELLO_MAX_LIST ? -EMSGSIZE : 0;
}

/* Accept one name, of type host_name (0): no other type was ever defined. */
int client_hello_read_server_name(char *out, struct client_hello_bytes extension)
{
    struct client_hello_bytes list, name;
    unsigned type;

    if (!client_hello_take_vector(&extension, 2, &list) || extension.n > 0 ||
        !client_hello_take_number(&list, 1, &type) || type != 0 ||
        !client_hello_take_vector(&list, 2, &name) || list.n > 0)
        return -EPROTO;
    if (server_name_read(out, (const char *)name.at, name.n) < 0)
        *out = '\0';
    return 0;
}

static int client_hello_read_alpn(struct client_hello *out, struct client_hello_bytes *data)
{
    struct client_hello_bytes list, name;

    if (!client_hello_take_vector(data, 2, &list) || data->n > 0 || list.n == 0)
        return -EPROTO;
    out->alpn = list;
    while (list.n > 0)
        if (!client_hello_alpn_next(&list, &name) || name.n == 0)
            return -EPROTO;
    return 0;
}

static int client_hello_read_extension(struct client_hello *out, unsigned type,
                                       struct client_hello_bytes *data, bool is_last)
{
    switch (type) {
    case EXTENSION_SERVER_NAME:
        out->has_sni = true;
        return client_hello_read_server_name(out->sni, *data);
    case EXTENSION_ALPN: return client_hello_read_alpn(out, data);
    case EXTENSION_SIGNATURE_ALGORITHMS:
        return client_hello_read_numbers(data, 2, &out->signatures);
    case EXTENSION_SUPPORTED_VERSIONS: return client_hello_read_numbers(data, 1, &out->versions);
    case EXTENSION_PRE_SHARED_KEY: return is_last ? 0 : -EPROTO;
    default: return 0;
    }
}

/* No type may come twice (RFC 8446, 4.2). */
static int client_hello_read_extensions(struct client_hello *out)
{
    struct client_hello_bytes rest = out->extensions, data;
    uint64_t seen[EXTENSION_SET_WORDS] = {0};
    unsigned type, n = 0;
    int rc = 0;

    while (rc == 0 && rest.n > 0) {
        if (!client_hello_take_number(&rest, 2, &type) ||
            !client_hello_take_vector(&rest, 2, &data) || (seen[type / 64] >> type % 64 & 1) != 0)
            return -EPROTO;
        if (++n > CLIENT_HELLO_MAX_LIST)
            return -EMSGSIZE;
        seen[type / 64] |= UINT64_C(1) << type % 64;
        rc = client_hello_read_extension(out, type, &data, rest.n == 0);
    }
    return rc;
}

/* The compression methods must include 0 (null); extensions are optional. */
static int client_hello_read_message(struct client_hello *out, struct client_hello_bytes rest)
{
    struct client_hello_bytes random, session, compressions;
    unsigned version;

    if (!client_hello_take_number(&rest, 2, &version) || version >> 8 != 3 ||
        !client_hello_take(&rest, RANDOM_BYTES, &random) ||
        !client_hello_take_vector(&rest, 1, &session) || session.n > SESSION_ID_MAX_BYTES ||
        !client_hello_take_vector(&rest, 2, &out->ciphers) || out->ciphers.n == 0 ||
        out->ciphers.n % 2 != 0 || !client_hello_take_vector(&rest, 1, &compressions) ||
        compressions.n == 0 || !memchr(compressions.at, 0, compressions.n))
        return -EPROTO;
    if (out->ciphers.n / 2 > CLIENT_HELLO_MAX_LIST)
        return -EMSGSIZE;
    out->version = (uint16_t)version;
    if (rest.n == 0)
        return 0;
    if (!client_hello_take_vector(&rest, 2, &out->extensions) || rest.n > 0)
        return -EPROTO;
    return client_hello_read_extensions(out);
}

static uint8_t *client_hello_join(const struct client_hello_scan *scan, const uint8_t *data)
{
    uint8_t *joined = malloc(scan->at), *to = joined;

    for (size_t at = 0; joined && at < scan->at;) {
        size_t n = (size_t)(data[at + 3] << 8 | data[at + 4]);

        memcpy(to, data + at + RECORD_HEADER_BYTES, n);
        to += n;
        at += RECORD_HEADER_BYTES + n;
    }
    return joined;
}

int client_hello_read(struct client_hello *out, const struct client_hello_scan *scan,
                      const uint8_t *data)
{
    size_t headers = scan->records * RECORD_HEADER_BYTES + MESSAGE_HEADER_BYTES;
    struct client_hello_bytes body = {data + headers, scan->at - headers};
    int rc;

    MUST(client_hello_is_whole(scan));
    *out = (struct client_hello){.joined = NULL};
    if (scan->records > 1) {
        out->joined = client_hello_join(scan, data);
        if (!out->joined)
            return -ENOMEM;
        body.at = out->joined + MESSAGE_HEADER_BYTES;
    }
    rc = client_hello_read_message(out, body);
    if (rc < 0)
        client_hello_free(out);
    return rc;
}

void client_hello_free(struct client_hello *hello)
{
    free(hello->joined);
    hello->joined = NULL;
}

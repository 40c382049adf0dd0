#include "stats/access_log_variable.h"

#include <arpa/inet.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"
#include "net/address.h"
#include "stats/access_log_record.h"
#include "stats/access_log_text.h"
#include "stats/session_id.h"

/* Longest values; longer ones are truncated. Section and server names have at most 32 bytes. */
#define NAME_BYTES        32
#define SERVER_BYTES      (NAME_BYTES + 1 + ADDRESS_TEXT_BYTES) /* NAME@ADDRESS */
#define HOST_BYTES        253
#define JA4_BYTES         36
#define CIPHER_BYTES      64
#define COMMON_NAME_BYTES 256
#define TIME_BYTES        sizeof("2026-11-21T12:00:00.123Z")

static void access_log_variable_put_text(struct access_log_text *t, const char *text,
                                         size_t max_bytes)
{
    if (text)
        access_log_text_value(t, text, strnlen(text, max_bytes));
    else
        access_log_text_missing(t);
}

static void access_log_variable_put_duration(struct access_log_text *t, int64_t ns)
{
    if (ns >= 0)
        access_log_text_seconds(t, ns);
    else
        access_log_text_missing(t);
}

/* "2026-11-21T12:00:00", cached for a second. */
static const char *access_log_variable_stamp(time_t now_s)
{
    static _Thread_local char text[sizeof("2026-11-21T12:00:00")];
    static _Thread_local time_t text_s = -1;
    struct tm tm;

    if (text_s == now_s)
        return text;
    if (!gmtime_r(&now_s, &tm) || strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
        text[0] = '\0'; /* year beyond four digits */
        return text;
    }
    text_s = now_s;
    return text;
}

static void access_log_variable_write_time(struct access_log_text *t,
                                           const struct access_log_record *r)
{
    char text[TIME_BYTES];
    struct access_log_text out = {.style = t->style, .at = text, .end = text + sizeof(text)};
    const char *seconds = access_log_variable_stamp((time_t)(r->time_ns / NS_PER_S));

    access_log_text_copy(&out, seconds, strlen(seconds));
    access_log_text_copy(&out, ".", 1);
    access_log_text_digits(&out, (uint64_t)(r->time_ns % NS_PER_S / NS_PER_MS), 3);
    access_log_text_copy(&out, "Z", 1);
    access_log_text_value(t, text, (size_t)(out.at - text));
}

static void access_log_variable_write_msec(struct access_log_text *t,
                                           const struct access_log_record *r)
{
    access_log_text_number(t, (uint64_t)(r->time_ns / NS_PER_S));
    access_log_text_copy(t, ".", 1);
    access_log_text_digits(t, (uint64_t)(r->time_ns % NS_PER_S / NS_PER_MS), 3);
}

/* Fast path: address_format() takes four times as long. */
static size_t access_log_variable_format_ipv4(char *out, size_t size, const unsigned char *host)
{
    struct access_log_text t = {.at = out, .end = out + size};

    for (unsigned i = 0; i < 4; i++) {
        if (i > 0)
            access_log_text_copy(&t, ".", 1);
        access_log_text_number(&t, host[i]);
    }
    return (size_t)(t.at - out);
}

static void access_log_variable_write_client(struct access_log_text *t,
                                             const struct access_log_record *r)
{
    char text[ADDRESS_TEXT_BYTES];
    const struct address *a = r->client;
    size_t len;
    const void *host;

    if (!a || a->len == 0) {
        access_log_text_missing(t);
        return;
    }
    host = address_host(a, &len);
    if (host && len == 4)
        access_log_text_value(t, text, access_log_variable_format_ipv4(text, sizeof(text), host));
    else if (host)
        access_log_variable_put_text(t, inet_ntop(AF_INET6, host, text, sizeof(text)),
                                     sizeof(text));
    else
        access_log_variable_put_text(t, address_format(text, sizeof(text), a), sizeof(text));
}

static void access_log_variable_write_client_port(struct access_log_text *t,
                                                  const struct access_log_record *r)
{
    const struct address *a = r->client;
    size_t len;

    if (a && a->len > 0 && address_host(a, &len)) /* port 0 is written, too */
        access_log_text_number(t, address_port(a));
    else
        access_log_text_missing(t);
}

static void access_log_variable_put_address(struct access_log_text *t, const struct address *a)
{
    char text[ADDRESS_TEXT_BYTES];
    struct access_log_text out = {.at = text, .end = text + sizeof(text)};

    if (!a || a->len == 0) {
        access_log_text_missing(t);
    } else if (a->u.sa.sa_family == AF_INET) {
        out.at += access_log_variable_format_ipv4(text, sizeof(text),
                                                  (const unsigned char *)&a->u.in.sin_addr);
        access_log_text_copy(&out, ":", 1);
        access_log_text_number(&out, address_port(a));
        access_log_text_value(t, text, (size_t)(out.at - text));
    } else {
        access_log_variable_put_text(t, address_format(text, sizeof(text), a), sizeof(text));
    }
}

static void access_log_variable_write_listen_address(struct access_log_text *t,
                                                     const struct access_log_record *r)
{
    access_log_variable_put_address(t, r->listen);
}

static void access_log_variable_write_proxy(struct access_log_text *t,
                                            const struct access_log_record *r)
{
    access_log_variable_put_address(t, r->proxy);
}

static void access_log_variable_write_server_address(struct access_log_text *t,
                                                     const struct access_log_record *r)
{
    access_log_variable_put_address(t, r->server_address);
}

static void access_log_variable_write_listener(struct access_log_text *t,
                                               const struct access_log_record *r)
{
    access_log_variable_put_text(t, r->listener, NAME_BYTES);
}

static void access_log_variable_write_upstream(struct access_log_text *t,
                                               const struct access_log_record *r)
{
    access_log_variable_put_text(t, r->upstream, NAME_BYTES);
}

static void access_log_variable_write_server(struct access_log_text *t,
                                             const struct access_log_record *r)
{
    access_log_variable_put_text(t, r->server, SERVER_BYTES);
}

static void access_log_variable_write_worker(struct access_log_text *t,
                                             const struct access_log_record *r)
{
    access_log_variable_put_text(t, r->worker, NAME_BYTES);
}

static void access_log_variable_write_unique_id(struct access_log_text *t,
                                                const struct access_log_record *r)
{
    char text[SESSION_ID_TEXT_BYTES];

    access_log_variable_put_text(t, r->id ? session_id_format(text, r->id) : NULL, sizeof(text));
}

static void access_log_variable_write_sni(struct access_log_text *t,
                                          const struct access_log_record *r)
{
    access_log_variable_put_text(t, r->sni, HOST_BYTES);
}

static void access_log_variable_write_alpn(struct access_log_text *t,
                                           const struct access_log_record *r)
{
    access_log_variable_put_text(t, r->alpn, ACCESS_LOG_RECORD_ALPN_BYTES);
}

static void access_log_variable_write_ja4(struct access_log_text *t,
                                          const struct access_log_record *r)
{
    access_log_variable_put_text(t, r->ja4, JA4_BYTES);
}

static void access_log_variable_write_tls_version(struct access_log_text *t,
                                                  const struct access_log_record *r)
{
    access_log_variable_put_text(t, r->tls_version, NAME_BYTES);
}

static void access_log_variable_write_tls_cipher(struct access_log_text *t,
                                                 const struct access_log_record *r)
{
    access_log_variable_put_text(t, r->tls_cipher, CIPHER_BYTES);
}

static void access_log_variable_write_tls_group(struct access_log_text *t,
                                                const struct access_log_record *r)
{
    access_log_variable_put_text(t, r->tls_group, CIPHER_BYTES);
}

static void access_log_variable_write_tls_resumed(struct access_log_text *t,
                                                  const struct access_log_record *r)
{
    access_log_variable_put_text(t, r->tls_resumed, NAME_BYTES);
}

static void access_log_variable_write_tls_client_name(struct access_log_text *t,
                                                      const struct access_log_record *r)
{
    access_log_variable_put_text(t, r->tls_client_name, COMMON_NAME_BYTES);
}

static void access_log_variable_write_tls_client_fingerprint(struct access_log_text *t,
                                                             const struct access_log_record *r)
{
    access_log_variable_put_text(t, r->tls_client_fingerprint, CIPHER_BYTES);
}

static void access_log_variable_write_tls_alert(struct access_log_text *t,
                                                const struct access_log_record *r)
{
    access_log_variable_put_text(t, r->tls_alert, NAME_BYTES);
}

static void access_log_variable_write_server_tls_alert(struct access_log_text *t,
                                                       const struct access_log_record *r)
{
    access_log_variable_put_text(t, r->server_tls_alert, NAME_BYTES);
}

static void access_log_variable_write_tls_handshake_time(struct access_log_text *t,
                                                         const struct access_log_record *r)
{
    access_log_variable_put_duration(t, r->tls_handshake_ns);
}

static void access_log_variable_write_reason(struct access_log_text *t,
                                             const struct access_log_record *r)
{
    char word[SESSION_REASON_WORD_BYTES];

    access_log_variable_put_text(t, session_reason_word(word, r->reason), sizeof(word));
}

static void access_log_variable_write_connection(struct access_log_text *t,
                                                 const struct access_log_record *r)
{
    access_log_text_number(t, r->connection);
}

/* Cached: getpid(2) is a system call. */
static void access_log_variable_write_pid(struct access_log_text *t,
                                          const struct access_log_record *r)
{
    static _Thread_local pid_t pid;

    (void)r;
    if (pid == 0)
        pid = getpid();
    access_log_text_number(t, (uint64_t)pid);
}

static void access_log_variable_write_bytes_in(struct access_log_text *t,
                                               const struct access_log_record *r)
{
    access_log_text_number(t, r->bytes_in);
}

static void access_log_variable_write_bytes_out(struct access_log_text *t,
                                                const struct access_log_record *r)
{
    access_log_text_number(t, r->bytes_out);
}

static void access_log_variable_write_tries(struct access_log_text *t,
                                            const struct access_log_record *r)
{
    access_log_text_number(t, r->tries);
}

static void access_log_variable_write_duration(struct access_log_text *t,
                                               const struct access_log_record *r)
{
    access_log_variable_put_duration(t, r->duration_ns);
}

static void access_log_variable_write_queue_time(struct access_log_text *t,
                                                 const struct access_log_record *r)
{
    access_log_variable_put_duration(t, r->queue_ns);
}

static void access_log_variable_write_connect_time(struct access_log_text *t,
                                                   const struct access_log_record *r)
{
    access_log_variable_put_duration(t, r->connect_ns);
}

static void access_log_variable_write_first_byte_time(struct access_log_text *t,
                                                      const struct access_log_record *r)
{
    access_log_variable_put_duration(t, r->first_byte_ns);
}

/* In the order of the format `json`. */
static const struct access_log_variable variables[] = {
    {"time", access_log_variable_write_time, TIME_BYTES},
    {"msec", access_log_variable_write_msec, 0},
    {"connection", access_log_variable_write_connection, 0},
    {"client", access_log_variable_write_client, ADDRESS_TEXT_BYTES},
    {"client_port", access_log_variable_write_client_port, 0},
    {"listener", access_log_variable_write_listener, NAME_BYTES},
    {"listen_address", access_log_variable_write_listen_address, ADDRESS_TEXT_BYTES},
    {"upstream", access_log_variable_write_upstream, NAME_BYTES},
    {"server", access_log_variable_write_server, SERVER_BYTES},
    {"server_address", access_log_variable_write_server_address, ADDRESS_TEXT_BYTES},
    {"bytes_in", access_log_variable_write_bytes_in, 0},
    {"bytes_out", access_log_variable_write_bytes_out, 0},
    {"duration", access_log_variable_write_duration, 0},
    {"queue_time", access_log_variable_write_queue_time, 0},
    {"connect_time", access_log_variable_write_connect_time, 0},
    {"first_byte_time", access_log_variable_write_first_byte_time, 0},
    {"tries", access_log_variable_write_tries, 0},
    {"reason", access_log_variable_write_reason, SESSION_REASON_WORD_BYTES},
    {"worker", access_log_variable_write_worker, NAME_BYTES},
    {"pid", access_log_variable_write_pid, 0},
    {"unique_id", access_log_variable_write_unique_id, SESSION_ID_TEXT_BYTES},
    {"proxy", access_log_variable_write_proxy, ADDRESS_TEXT_BYTES},
    {"sni", access_log_variable_write_sni, HOST_BYTES},
    {"alpn", access_log_variable_write_alpn, ACCESS_LOG_RECORD_ALPN_BYTES},
    {"ja4", access_log_variable_write_ja4, JA4_BYTES},
    {"tls_version", access_log_variable_write_tls_version, NAME_BYTES},
    {"tls_cipher", access_log_variable_write_tls_cipher, CIPHER_BYTES},
    {"tls_group", access_log_variable_write_tls_group, CIPHER_BYTES},
    {"tls_resumed", access_log_variable_write_tls_resumed, NAME_BYTES},
    {"tls_client_name", access_log_variable_write_tls_client_name, COMMON_NAME_BYTES},
    {"tls_client_fingerprint", access_log_variable_write_tls_client_fingerprint, CIPHER_BYTES},
    {"tls_handshake_time", access_log_variable_write_tls_handshake_time, 0},
    {"tls_alert", access_log_variable_write_tls_alert, NAME_BYTES},
    {"server_tls_alert", access_log_variable_write_server_tls_alert, NAME_BYTES},
};

unsigned access_log_variable_count(void)
{
    return ARRAY_LEN(variables);
}

const struct access_log_variable *access_log_variable_at(unsigned i)
{
    MUST(i < ARRAY_LEN(variables));
    return &variables[i];
}

const struct access_log_variable *access_log_variable_find(const char *name, size_t len)
{
    for (unsigned i = 0; i < ARRAY_LEN(variables); i++)
        if (strlen(variables[i].name) == len && memcmp(variables[i].name, name, len) == 0)
            return &variables[i];
    return NULL;
}

size_t access_log_variable_max_bytes(const struct access_log_variable *v)
{
    if (v->text_bytes == 0)
        return ACCESS_LOG_TEXT_NUMBER_BYTES;
    return v->text_bytes * ACCESS_LOG_TEXT_ESCAPE_BYTES + 2; /* quotes */
}

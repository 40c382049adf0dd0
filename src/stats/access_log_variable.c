#include "stats/access_log_variable.h"

#include <arpa/inet.h>
#include <stdint.h>
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

/* ---- writers, by the type of the member ---- */

static void access_log_variable_write_number(struct access_log_text *t, const void *value)
{
    access_log_text_number(t, *(const uint64_t *)value);
}

static void access_log_variable_write_duration(struct access_log_text *t, const void *value)
{
    int64_t ns = *(const int64_t *)value;

    if (ns >= 0)
        access_log_text_seconds(t, ns);
    else
        access_log_text_missing(t);
}

static void access_log_variable_write_known(struct access_log_text *t, const void *value)
{
    const uint64_t *number = *(const uint64_t *const *)value;

    if (number)
        access_log_text_number(t, *number);
    else
        access_log_text_missing(t);
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

static void access_log_variable_write_address(struct access_log_text *t, const void *value)
{
    const struct address *a = *(const struct address *const *)value;
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

static void access_log_variable_write_id(struct access_log_text *t, const void *value)
{
    const struct session_id *id = *(const struct session_id *const *)value;
    char text[SESSION_ID_TEXT_BYTES];

    access_log_variable_put_text(t, id ? session_id_format(text, id) : NULL, sizeof(text));
}

static void access_log_variable_write_reason(struct access_log_text *t, const void *value)
{
    char word[SESSION_REASON_WORD_BYTES];

    access_log_variable_put_text(t, session_reason_word(word, *(const enum session_reason *)value),
                                 sizeof(word));
}

/* ---- writers of single variables ---- */

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

static void access_log_variable_write_time(struct access_log_text *t, const void *value)
{
    int64_t time_ns = *(const int64_t *)value;
    char text[TIME_BYTES];
    struct access_log_text out = {.style = t->style, .at = text, .end = text + sizeof(text)};
    const char *seconds = access_log_variable_stamp((time_t)(time_ns / NS_PER_S));

    access_log_text_copy(&out, seconds, strlen(seconds));
    access_log_text_copy(&out, ".", 1);
    access_log_text_digits(&out, (uint64_t)(time_ns % NS_PER_S / NS_PER_MS), 3);
    access_log_text_copy(&out, "Z", 1);
    access_log_text_value(t, text, (size_t)(out.at - text));
}

static void access_log_variable_write_msec(struct access_log_text *t, const void *value)
{
    int64_t time_ns = *(const int64_t *)value;

    access_log_text_number(t, (uint64_t)(time_ns / NS_PER_S));
    access_log_text_copy(t, ".", 1);
    access_log_text_digits(t, (uint64_t)(time_ns % NS_PER_S / NS_PER_MS), 3);
}

static void access_log_variable_write_client(struct access_log_text *t, const void *value)
{
    char text[ADDRESS_TEXT_BYTES];
    const struct address *a = *(const struct address *const *)value;
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

static void access_log_variable_write_client_port(struct access_log_text *t, const void *value)
{
    const struct address *a = *(const struct address *const *)value;
    size_t len;

    if (a && a->len > 0 && address_host(a, &len)) /* port 0 is written, too */
        access_log_text_number(t, address_port(a));
    else
        access_log_text_missing(t);
}

/* Cached: getpid(2) is a system call. */
static void access_log_variable_write_pid(struct access_log_text *t, const void *value)
{
    static _Thread_local pid_t pid;

    (void)value;
    if (pid == 0)
        pid = getpid();
    access_log_text_number(t, (uint64_t)pid);
}

/* clang-format off */
/* The writer for the type of ${member}. */
#define WRITER(member)                                                  \
    _Generic(((struct access_log_record *)0)->member,                   \
             uint64_t: access_log_variable_write_number,                \
             int64_t: access_log_variable_write_duration,               \
             const char *: NULL,                                        \
             const uint64_t *: access_log_variable_write_known,         \
             const struct address *: access_log_variable_write_address, \
             const struct session_id *: access_log_variable_write_id,   \
             enum session_reason: access_log_variable_write_reason)
#define AT(member) offsetof(struct access_log_record, member)
#define OF(member) WRITER(member), AT(member)

static const struct access_log_variable variables[] = {
    {"time", access_log_variable_write_time, AT(time_ns), TIME_BYTES, 0},
    {"msec", access_log_variable_write_msec, AT(time_ns), 0, 0},
    {"connection", OF(connection), 0, 0},
    {"client", access_log_variable_write_client, AT(client), ADDRESS_TEXT_BYTES, 0},
    {"client_port", access_log_variable_write_client_port, AT(client), 0, 0},
    {"listener", OF(listener), NAME_BYTES, 0},
    {"listen_address", OF(listen), ADDRESS_TEXT_BYTES, 0},
    {"upstream", OF(upstream), NAME_BYTES, 0},
    {"server", OF(server), SERVER_BYTES, 0},
    {"server_address", OF(server_address), ADDRESS_TEXT_BYTES, 0},
    {"bytes_in", OF(bytes_in), 0, 0},
    {"bytes_out", OF(bytes_out), 0, 0},
    {"duration", OF(duration_ns), 0, 0},
    {"queue_time", OF(queue_ns), 0, 0},
    {"connect_time", OF(connect_ns), 0, 0},
    {"first_byte_time", OF(first_byte_ns), 0, 0},
    {"tries", OF(tries), 0, 0},
    {"reason", OF(reason), SESSION_REASON_WORD_BYTES, 0},
    {"worker", OF(worker), NAME_BYTES, 0},
    {"pid", access_log_variable_write_pid, 0, 0, 0},
    {"unique_id", OF(id), SESSION_ID_TEXT_BYTES, 0},
    {"proxy", OF(proxy), ADDRESS_TEXT_BYTES, 0},
    {"sni", OF(sni), HOST_BYTES, 0},
    {"alpn", OF(alpn), ACCESS_LOG_RECORD_ALPN_BYTES, 0},
    {"ja4", OF(ja4), JA4_BYTES, 0},
    {"tls_version", OF(tls_version), NAME_BYTES, 0},
    {"tls_cipher", OF(tls_cipher), CIPHER_BYTES, 0},
    {"tls_group", OF(tls_group), CIPHER_BYTES, 0},
    {"tls_resumed", OF(tls_resumed), NAME_BYTES, 0},
    {"tls_client_name", OF(tls_client_name), COMMON_NAME_BYTES, 0},
    {"tls_client_fingerprint", OF(tls_client_fingerprint), CIPHER_BYTES, 0},
    {"tls_handshake_time", OF(tls_handshake_ns), 0, 0},
    {"tls_alert", OF(tls_alert), NAME_BYTES, 0},
    {"server_tls_alert", OF(server_tls_alert), NAME_BYTES, 0},
    {"client_rtt", OF(client_rtt_us), 0, ACCESS_LOG_ASK_CLIENT_TCP},
    {"client_rtt_var", OF(client_rtt_var_us), 0, ACCESS_LOG_ASK_CLIENT_TCP},
    {"client_retransmits", OF(client_retransmits), 0, ACCESS_LOG_ASK_CLIENT_TCP},
    {"client_delivery_rate", OF(client_delivery_rate), 0, ACCESS_LOG_ASK_CLIENT_TCP},
    {"server_rtt", OF(server_rtt_us), 0, ACCESS_LOG_ASK_SERVER_TCP},
    {"server_rtt_var", OF(server_rtt_var_us), 0, ACCESS_LOG_ASK_SERVER_TCP},
    {"server_retransmits", OF(server_retransmits), 0, ACCESS_LOG_ASK_SERVER_TCP},
    {"server_delivery_rate", OF(server_delivery_rate), 0, ACCESS_LOG_ASK_SERVER_TCP},
    {"server_bytes_in", OF(server_bytes_in), 0, ACCESS_LOG_ASK_TIMES},
    {"server_bytes_out", OF(server_bytes_out), 0, ACCESS_LOG_ASK_TIMES},
    {"source_address", OF(source_address), ADDRESS_TEXT_BYTES, ACCESS_LOG_ASK_SOURCE},
    {"attempts", OF(attempts), ACCESS_LOG_RECORD_ATTEMPTS_BYTES, ACCESS_LOG_ASK_ATTEMPTS},
    {"client_fin_time", OF(client_fin_ns), 0, ACCESS_LOG_ASK_TIMES},
    {"server_fin_time", OF(server_fin_ns), 0, ACCESS_LOG_ASK_TIMES},
    {"half_closed_time", OF(half_closed_ns), 0, ACCESS_LOG_ASK_TIMES},
    {"tls_section", OF(tls_section), NAME_BYTES, 0},
};
/* clang-format on */

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

void access_log_variable_write(const struct access_log_variable *v, struct access_log_text *t,
                               const struct access_log_record *r)
{
    const char *value = (const char *)r + v->offset;

    if (v->write)
        v->write(t, value);
    else
        access_log_variable_put_text(t, *(const char *const *)(const void *)value, v->text_bytes);
}

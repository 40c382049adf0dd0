#include "stats/session_reason.h"

#include <errno.h>
#include <stddef.h>

#include "base/must.h"

const char *session_reason_text(enum session_reason reason)
{
    static const char *const text[] = {
        [SESSION_OPEN] = "open",
        [SESSION_CLIENT_FIN] = "client fin",
        [SESSION_CLIENT_RESET] = "client reset",
        [SESSION_UPSTREAM_FIN] = "upstream fin",
        [SESSION_UPSTREAM_RESET] = "upstream reset",
        [SESSION_CONNECT_REFUSED] = "connect refused",
        [SESSION_CONNECT_TIMEOUT] = "connect timeout",
        [SESSION_NO_SERVER] = "no server",
        [SESSION_NO_ROUTE] = "no route",
        [SESSION_QUEUE_TIMEOUT] = "queue timeout",
        [SESSION_TLS_HANDSHAKE] = "tls handshake",
        [SESSION_CLIENT_TLS] = "client tls",
        [SESSION_UPSTREAM_TLS] = "upstream tls",
        [SESSION_IDLE] = "idle",
        [SESSION_LIFETIME] = "lifetime",
        [SESSION_LIMIT] = "limit",
        [SESSION_DRAIN] = "drain",
        [SESSION_SERVER_DOWN] = "server down",
        [SESSION_KILLED] = "killed",
        [SESSION_ERROR] = "error",
    };

    _Static_assert(ARRAY_LEN(text) == SESSION_REASONS, "a reason has no text");
    MUST((size_t)reason < ARRAY_LEN(text));
    return text[reason];
}

const char *session_reason_word(char *word, enum session_reason reason)
{
    const char *text = session_reason_text(reason);
    size_t len = 0;

    for (; text[len] != '\0'; len++) {
        MUST(len < SESSION_REASON_WORD_BYTES - 1);
        word[len] = text[len] == ' ' ? '_' : text[len];
    }
    word[len] = '\0';
    return word;
}

enum session_reason session_reason_of_connect(int error)
{
    switch (error) {
    case -ETIMEDOUT: return SESSION_CONNECT_TIMEOUT;
    case -ECONNREFUSED:
    case -ECONNRESET: /* reset during the handshake, by some firewalls */
    case -EHOSTUNREACH:
    case -ENETUNREACH:
    case -EAGAIN: /* unix socket with a full backlog */
    case -ENOENT: /* unix socket does not exist */
    case -EACCES:
    case -EPERM: return SESSION_CONNECT_REFUSED;
    default: return SESSION_ERROR;
    }
}

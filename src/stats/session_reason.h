/*
 * stats/session_reason: why a session ended: the first reason that applied.
 */
#ifndef STATS_SESSION_REASON_H
#define STATS_SESSION_REASON_H

enum session_reason {
    SESSION_OPEN,
    SESSION_CLIENT_FIN,
    SESSION_CLIENT_RESET, /* or its host stopped answering */
    SESSION_UPSTREAM_FIN,
    SESSION_UPSTREAM_RESET,
    SESSION_CONNECT_REFUSED, /* or unreachable */
    SESSION_CONNECT_TIMEOUT,
    SESSION_NO_SERVER, /* no server could be tried */
    SESSION_NO_ROUTE,  /* no route matched, and the listener has no upstream */
    SESSION_QUEUE_TIMEOUT,
    SESSION_TLS_HANDSHAKE, /* the client's handshake failed, or was too slow */
    SESSION_CLIENT_TLS,    /* TLS with the client failed after its handshake */
    SESSION_UPSTREAM_TLS,  /* the same with the last server, or its handshake failed */
    SESSION_IDLE,          /* one side or both were silent for too long */
    SESSION_LIFETIME,
    SESSION_LIMIT,
    SESSION_DRAIN, /* reactord stops, the listener or its TLS is removed, or the session is shed */
    SESSION_SERVER_DOWN,
    SESSION_KILLED, /* by an administrator */
    SESSION_ERROR,  /* internal, or any other error */
    SESSION_REASONS
};

/* session_reason_text(reason): return ${reason} as text, such as `client fin`. */
const char *session_reason_text(enum session_reason reason);

#define SESSION_REASON_WORD_BYTES 32

/*
 * session_reason_word(word, reason):
 * Write ${reason} as one word, such as `client_fin`, to SESSION_REASON_WORD_BYTES; return ${word}.
 */
const char *session_reason_word(char *word, enum session_reason reason);

/*
 * session_reason_of_connect(error):
 * Return the reason of a session whose last server tried failed with ${error}.
 */
enum session_reason session_reason_of_connect(int error);

#endif

/*
 * stats/session_reason: why sessions end: who ended it, and how. The list is closed: a session has
 * exactly one of these, the first that applied, in the log and in the counters.
 */
#ifndef STATS_SESSION_REASON_H
#define STATS_SESSION_REASON_H

enum session_reason {
    SESSION_OPEN, /* none yet */
    SESSION_CLIENT_FIN,
    SESSION_CLIENT_RESET, /* or its host was not heard of any more */
    SESSION_UPSTREAM_FIN,
    SESSION_UPSTREAM_RESET,
    SESSION_CONNECT_REFUSED, /* also unreachable: an answer, but not the server's */
    SESSION_CONNECT_TIMEOUT,
    SESSION_NO_SERVER, /* none that could be tried */
    SESSION_QUEUE_TIMEOUT,
    SESSION_IDLE, /* a side, or both, said nothing for too long; from the first byte on */
    SESSION_LIFETIME,
    SESSION_LIMIT,
    SESSION_DRAIN, /* the daemon ends: finished in good order, or cut */
    SESSION_SERVER_DOWN,
    SESSION_ERROR, /* ours, or one of the kernel's that is none of the above */
    SESSION_REASONS
};

/*
 * session_reason_text(reason):
 * In words, such as `client fin`.
 *
 * Thread: any
 */
const char *session_reason_text(enum session_reason reason);

/* Room for the longest word, its NUL included. */
#define SESSION_REASON_WORD_BYTES 32

/*
 * session_reason_word(word, reason):
 * As one word, such as `client_fin`, in SESSION_REASON_WORD_BYTES at ${word}. Returns ${word}.
 *
 * Thread: any
 */
const char *session_reason_word(char *word, enum session_reason reason);

/*
 * session_reason_of_connect(error):
 * What the failure ${error} of the last server that was tried makes of its session.
 *
 * Thread: any
 */
enum session_reason session_reason_of_connect(int error);

#endif

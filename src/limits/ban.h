/*
 * limits/ban: a ban of a client, and the offences that lead to one.
 */
#ifndef LIMITS_BAN_H
#define LIMITS_BAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "net/cidr.h"

/* Limit of ban_conf.offences. */
#define BAN_OFFENCES_MAX 10000

/* Ban a client for `ban_ns` after `offences` within `window_ns`. */
struct ban_conf {
    unsigned offences; /* 0: no bans */
    bool is_dry;       /* a dry run: bans are counted, and refuse no client */
    int64_t window_ns;
    int64_t ban_ns;
};

enum ban_offence {
    BAN_OFFENCE_LIMIT,  /* refused by a limit per client */
    BAN_OFFENCE_DENIED, /* by an access rule or a route */
    BAN_OFFENCE_HEADER, /* not a trusted proxy, where a PROXY header is required */
    BAN_OFFENCE_HELLO,  /* no ClientHello, or a broken one, where a route needs one */
    BAN_OFFENCE_TLS,    /* the TLS handshake failed */
    BAN_OFFENCES
};

/* A ban. Times of CLOCK_MONOTONIC. */
struct ban {
    struct cidr block;        /* the client */
    uint32_t zone;            /* of a link-local address; else 0 */
    enum ban_offence offence; /* the last one */
    int64_t since_ns, until_ns;
    uint64_t refused; /* connections since */
    bool is_dry;      /* begun in a dry run, and ends with it */
};

/* Bans that a table did not take, or ended for others. */
struct ban_losses {
    unsigned ended;  /* before */
    unsigned prefix; /* of another length than the table has */
    unsigned dry;    /* of a dry run, and the table is not */
    unsigned full;   /* the table has no space for them: they end first */
};

/*
 * ban_offence_word(offence) / ban_offence_of(word, out):
 * Return ${offence} as one word, such as `denied` / find the offence of ${word}; false: unknown.
 */
const char *ban_offence_word(enum ban_offence offence);
bool ban_offence_of(const char *word, enum ban_offence *out) NODISCARD;

#define BAN_TEXT_BYTES (CIDR_TEXT_BYTES + 12)

/*
 * ban_text(ban, text):
 * Write the client of ${ban} to ${text}, of BAN_TEXT_BYTES: `192.0.2.1`, `2001:db8::/64`,
 * `fe80::1%2`. Returns ${text}.
 */
const char *ban_text(const struct ban *ban, char *text);

/* ban_is_of(ban, block): have ${ban} and ${block} addresses in common? NULL: any block. */
bool ban_is_of(const struct ban *ban, const struct cidr *block);

#endif

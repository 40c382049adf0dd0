/* tls/tls_profile_conf: the settings of a [tls NAME] section. */
#ifndef TLS_TLS_PROFILE_CONF_H
#define TLS_TLS_PROFILE_CONF_H

#include <stdbool.h>

struct tls_profile;

enum tls_unknown_name {
    TLS_UNKNOWN_NAME_DEFAULT, /* the first certificate */
    TLS_UNKNOWN_NAME_REJECT   /* send alert unrecognized_name, also if no name was sent */
};

enum tls_version { TLS_VERSION_1_2, TLS_VERSION_1_3 };

/* How the peer's certificate is verified; a client's only if client_ca is set. */
enum tls_verify {
    TLS_VERIFY_REQUIRED,
    TLS_VERIFY_OPTIONAL, /* a client may send no certificate, a server must */
    TLS_VERIFY_OFF
};

/* What an end of file without close_notify becomes. */
enum tls_truncated { TLS_TRUNCATED_EOF, TLS_TRUNCATED_RESET };

struct tls_paths {
    const char **list;
    unsigned n;
};

/* How the name that a client asks for matches a section; the greater, the better. */
enum tls_match { TLS_MATCH_NONE, TLS_MATCH_WILDCARD, TLS_MATCH_EXACT };

/* Settings of a profile; NULL and empty lists: not set. */
struct tls_profile_conf {
    const char *name;              /* of [tls NAME] */
    bool for_clients, for_servers; /* used by a listener / by an upstream */
    struct tls_paths certificates;
    struct tls_paths keys;  /* private keys of `certificates`, in the same order */
    struct tls_paths names; /* patterns in the form of server_name_read_pattern() */
    enum tls_unknown_name unknown_name;
    enum tls_version min_version;
    const char *ciphers;       /* names of TLS 1.2 and 1.3, separated by colons */
    const char *groups;        /* separated by colons */
    const unsigned char *alpn; /* as in a ClientHello: a length byte before each name */
    unsigned alpn_bytes;
    bool alpn_of_client; /* offer servers the protocol agreed with the client */
    const char *ca;      /* CAs of servers' certificates; NULL: the system's */
    const char *client_ca;
    const char *client_crl;
    const char *server_crl;
    enum tls_verify verify;
    enum tls_truncated truncated;
    struct tls_paths ocsp;            /* files with OCSP responses */
    struct tls_paths tickets;         /* files with ticket keys; none: keys of the process */
    const struct tls_profile *before; /* the profile to be replaced; NULL at start */
};

#endif

/*
 * listen/listeners_internal: the set of listeners and a change of it.
 *
 * note: lists. Only the control loop, or main while no change is under way, changes listeners and
 * addresses, under the lock; it reads them without the lock. Other threads read them under the
 * lock; bosses remove closed sockets, and any thread may stop sockets.
 *
 * note: in the way. A wildcard address and an address of the same port can both be bound only if
 * they share the port (SO_REUSEPORT). If one replaces the other, both sockets share the port. The
 * new socket listens only at the commit: before, it would take clients from the old one. It keeps
 * SO_REUSEPORT, because clearing the option would not close the port to processes of the same user
 * (inet_csk_get_port(), fastreuseport).
 *
 * note: hidden. A client whose handshake has begun is reset if the listen socket closes before the
 * handshake ends. So if an address is replaced by another one of the same listener and port, its
 * sockets are hidden from new clients (sock_hide()). They accept for LISTENERS_HIDDEN_NS more, for
 * their listener's current generation. Hidden sockets share the port, so that a reload meanwhile
 * can bind their address again.
 */
#ifndef LISTEN_LISTENERS_INTERNAL_H
#define LISTEN_LISTENERS_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/list.h"
#include "engine/lock.h"
#include "engine/timer.h"
#include "limits/admission.h"
#include "listen/listeners.h"
#include "net/address.h"
#include "net/sock.h"

struct listener_generation;
struct listener_socket;

/* Hidden sockets accept for so long: SYN-ACKs are resent after 1 s and 3 s. */
#define LISTENERS_HIDDEN_NS (4 * NS_PER_S)

/* The oldest hidden sockets are closed if there are more. */
#define LISTENERS_HIDDEN_MAX 64

/* An address, in use or not; sessions point at it, so only listeners_destroy() frees it. */
struct listeners_address {
    struct list link;
    struct address address;
    struct list sockets; /* sockets in use; closing sockets move to listeners.closing */
    unsigned n_sockets;
    struct listener_generation *current; /* generation that has the sockets; NULL: none */
    struct listener_generation *next;    /* generation in the change under way; NULL: none */
    struct list opened; /* new sockets, used from the commit or listeners_start() on */
    unsigned n_opened;
    unsigned first_loop;       /* see listen/listeners_place */
    struct sock_own_file file; /* of a unix socket in use */
    bool shared;               /* SO_REUSEPORT was set for the change under way */
    bool in_the_way;           /* see note: in the way */
};

struct listeners {
    struct listeners_env env;
    struct lock lock; /* see note: lists */
    struct listener **list;
    unsigned n;
    struct list addresses;
    unsigned n_addresses;
    struct list closing; /* sockets */
    struct list hidden;  /* sockets, the oldest first; see note: hidden */
    unsigned n_hidden;
    struct timer hidden_end; /* control loop */
    unsigned accept_batch;   /* of the last committed change */
    unsigned acceptors;      /* the same */
    atomic_bool started;
    bool stopping;
};

struct listeners_change_item {
    struct listener *listener; /* a reference */
    struct listener_generation *generation;
};

struct listeners_change {
    struct listeners *listeners;
    struct list replaced; /* generations */
    unsigned accept_batch, acceptors;
    int64_t leave_ns;
    char *why;              /* see struct listeners_sources */
    struct listener **list; /* the next listeners.list */
    unsigned n;
    struct listeners_change_item items[];
};

/*
 * listeners_refuse(change, format, ...):
 * Log why ${change} is refused, and keep the text where listeners_sources.why points.
 *
 * Thread: as listeners_prepare()
 */
void listeners_refuse(const struct listeners_change *change, const char *format, ...)
    PRINTF_LIKE(2, 3);

/*
 * listeners_limits_share(change, limits):
 * What the next listener of ${change} shares, by [limits ${limits}], with those before it, else
 * with the current ones. NULL: nothing.
 *
 * Thread: as listeners_prepare()
 */
struct admission_share listeners_limits_share(const struct listeners_change *change,
                                              const char *limits);

/* listeners_want(la, gen): number of sockets that ${gen} wants for ${la}. */
unsigned listeners_want(const struct listeners_address *la, const struct listener_generation *gen);

/*
 * listeners_open_sockets(ls, la, gen, accept_batch):
 * Take from the store, or open, the sockets that ${la} still needs for ${gen}. The new sockets are
 * in la->opened, also after an error.
 *
 * Thread: control loop, or main before start
 * Errors: 0; -ENOMEM; -EMFILE; as sock_listen()
 */
int listeners_open_sockets(struct listeners *ls, struct listeners_address *la,
                           struct listener_generation *gen, unsigned accept_batch) NODISCARD;

/*
 * listeners_configure_inherited(ls):
 * Configure the inherited sockets, which another process used until now, and open the sockets that
 * are still missing. Failures are logged.
 *
 * Thread: main, while no change is under way
 */
void listeners_configure_inherited(struct listeners *ls);

/*
 * listeners_find_conflict(ls, la):
 * Find another address of the change under way that cannot be bound beside ${la}; NULL: none.
 *
 * Thread: as listeners_open_sockets()
 */
const struct listeners_address *listeners_find_conflict(const struct listeners *ls,
                                                        const struct listeners_address *la);

/*
 * listeners_share(ls, la, shared):
 * Set or clear SO_REUSEPORT on all sockets of ${la}; with a configured reuseport > 1 it stays set.
 *
 * Thread: as listeners_open_sockets()
 * Errors: 0; as sock_share_port()
 */
int listeners_share(struct listeners *ls, struct listeners_address *la, bool shared);

/*
 * listeners_look_up(ls, a):
 * Return the address that equals ${a}; NULL: there is none.
 *
 * Thread: control loop, or main before start; any while the lock is held
 */
struct listeners_address *listeners_look_up(struct listeners *ls, const struct address *a);

/*
 * listeners_acceptor_name(ls):
 * What accepts now, for logs: "boss" or "worker".
 *
 * Thread: as listeners_open_sockets()
 */
const char *listeners_acceptor_name(const struct listeners *ls);

/*
 * listeners_start_socket(ls, la, i, sock):
 * Start ${sock}, number ${i} of ${la}, if necessary on another loop.
 *
 * Thread: as listeners_open_sockets(), while the lock is held
 * Errors: as listener_socket_start()
 */
int listeners_start_socket(struct listeners *ls, const struct listeners_address *la, unsigned i,
                           struct listener_socket *sock) NODISCARD;

/*
 * listeners_place_sockets(ls):
 * Move the sockets to the loops that accept now.
 *
 * Thread: control loop, while the lock is held
 */
void listeners_place_sockets(struct listeners *ls);

/*
 * listeners_commit_opened(ls, la):
 * Use the opened sockets of ${la}. Before listeners_start() sockets that do not listen yet stay in
 * la->opened: a start that fails would reset their clients.
 *
 * Thread: as listeners_open_sockets(), while the lock is held
 */
void listeners_commit_opened(struct listeners *ls, struct listeners_address *la);

/*
 * listeners_destroy_opened(la) / listeners_cancel_address(ls, la):
 * Close the opened sockets of ${la} / and undo all else that prepares a change.
 *
 * Thread: as listeners_open_sockets()
 */
void listeners_destroy_opened(struct listeners_address *la);
void listeners_cancel_address(struct listeners *ls, struct listeners_address *la);

/*
 * listeners_change_find(change, l):
 * The next generation of ${l}; NULL: ${l} is removed.
 *
 * Thread: as listeners_open_sockets()
 */
struct listener_generation *listeners_change_find(const struct listeners_change *change,
                                                  const struct listener *l);

/*
 * listeners_stop_socket(ls, sock):
 * Close ${sock}, which is in no list. True: no loop calls env.stopped(), so the caller must.
 *
 * Thread: control loop, while the lock is held
 */
bool listeners_stop_socket(struct listeners *ls, struct listener_socket *sock) NODISCARD;

/*
 * listeners_hide_init(ls):
 * Initialize the list of hidden sockets and its timer; see note: hidden.
 *
 * Thread: main
 */
void listeners_hide_init(struct listeners *ls);

/*
 * listeners_heir(ls, la, of):
 * Return the current generation of the listener ${of} if one of its addresses conflicts with, and
 * so replaces, ${la}; else NULL.
 *
 * Thread: control loop
 */
struct listener_generation *listeners_heir(const struct listeners *ls,
                                           const struct listeners_address *la,
                                           const struct listener *of);

/*
 * listeners_hide(ls, sock, heir, accept_batch):
 * Let the hidden ${sock}, which is in no list, accept for ${heir}, for LISTENERS_HIDDEN_NS.
 *
 * Thread: control loop, while the lock is held
 */
void listeners_hide(struct listeners *ls, struct listener_socket *sock,
                    struct listener_generation *heir, unsigned accept_batch);

/*
 * listeners_commit_hidden(change):
 * Give the hidden sockets to the next generation of their listener, or close them if there is none.
 * Returns for how many sockets the caller must call env.stopped().
 *
 * Thread: control loop, while the lock is held
 */
unsigned listeners_commit_hidden(struct listeners_change *change) NODISCARD;

/*
 * listeners_has_hidden(ls, a):
 * Is a hidden socket bound to ${a}, or to an address in its way?
 *
 * Thread: as listeners_open_sockets()
 */
bool listeners_has_hidden(struct listeners *ls, const struct address *a);

#endif

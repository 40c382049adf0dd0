/*
 * limits/ban_table: clients who offend, and bans: who offends too often is refused for a while.
 *
 * An offence is counted by the client's name (limits/client_name) and in eight parts of the window:
 * who is banned has offended that often within the window.
 *
 * The table has a fixed size. A new offender evicts the one that has not offended for longest, but
 * no ban: an eighth of the entries is left to offenders. A ban above that evicts the one that ends
 * first.
 *
 *   free -> offender --offends too often--> banned --the ban ends, or is lifted--> free
 *
 * While a client is banned, its offences do not count: the ban ends in time, whatever it does.
 *
 * Each accept needs the lock while there are bans. Whatever handles all bans takes it again and
 * again, for some entries at a time; it may miss bans that begin meanwhile.
 *
 * note: bans. `n_bans` tells other threads without the lock that there is no ban, which is usual.
 * A thread that sees an old number serves, or refuses, one more client.
 */
#ifndef LIMITS_BAN_TABLE_H
#define LIMITS_BAN_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "limits/ban.h"
#include "limits/client_name.h"

struct address;
struct ban_table;

struct ban_table_conf {
    unsigned max_clients;
    struct client_name_conf name;
    struct ban_conf ban;
};

/* What an offence led to. */
struct ban_judgement {
    bool is_counted; /* not of a banned client */
    bool is_banned;  /* by `ban`, from now on */
    struct ban ban;
    bool forgot_offender; /* evicted one within the window of its last offence */
    bool forgot_ban;      /* evicted a ban before its end */
};

/*
 * ban_table_create(out, conf):
 * Create an empty table.
 *
 * Owns:   ${conf} is copied
 * Errors: 0; -ENOMEM; -errno of getrandom(2)
 */
int ban_table_create(struct ban_table **out, const struct ban_table_conf *conf) NODISCARD;

/*
 * ban_table_fits(t, conf) / ban_table_set(t, ban):
 * Does ${conf} differ from that of ${t} only in the member `ban`? / Count by ${ban} from now on;
 * running bans stay as they are, but the end of a dry run ends its bans and forgets its offences.
 * Returns the number of bans that ended.
 */
bool ban_table_fits(const struct ban_table *t, const struct ban_table_conf *conf);
unsigned ban_table_set(struct ban_table *t, const struct ban_conf *ban);

/* ban_table_has_bans(t): is any ban in force, as far as this thread knows? */
bool ban_table_has_bans(const struct ban_table *t);

/* ban_table_refuses(t, a, now_ns): is client ${a} banned? Then count the refused connection. */
bool ban_table_refuses(struct ban_table *t, const struct address *a, int64_t now_ns);

/* ban_table_offend(t, a, offence, now_ns, out): count an offence of client ${a}. */
void ban_table_offend(struct ban_table *t, const struct address *a, enum ban_offence offence,
                      int64_t now_ns, struct ban_judgement *out);

/*
 * ban_table_add(t, list, n, now_ns, lost) / ban_table_copy(t, from, now_ns, lost):
 * Add the ${n} bans in ${list} / the bans of ${from}, and count in ${lost} those that ${t} has not.
 * A ban of a client whose ban in ${t} ends later is not needed, but a real one replaces a dry one.
 */
void ban_table_add(struct ban_table *t, const struct ban *list, unsigned n, int64_t now_ns,
                   struct ban_losses *lost);
void ban_table_copy(struct ban_table *t, struct ban_table *from, int64_t now_ns,
                    struct ban_losses *lost);

/* ban_table_lift(t, block, now_ns): end the bans of ban_is_of(); return their number. */
unsigned ban_table_lift(struct ban_table *t, const struct cidr *block, int64_t now_ns);

/* ban_table_each(t, now_ns, visit, cookie): visit copies of all bans, in any order. */
void ban_table_each(struct ban_table *t, int64_t now_ns,
                    void (*visit)(void *cookie, const struct ban *ban), void *cookie);

/* ban_table_bans(t, now_ns): number of bans in force. */
unsigned ban_table_bans(struct ban_table *t, int64_t now_ns);

/*
 * ban_table_hold(t) / ban_table_release(t):
 * Add a reference and return ${t} / release one; the last release frees ${t}. NULL is allowed.
 */
struct ban_table *ban_table_hold(struct ban_table *t);
void ban_table_release(struct ban_table *t);

#endif

/*
 * support/zone: name servers on 127.0.0.1, by datagrams and TCP, that know one zone and keep a log
 * of the questions.
 */
#ifndef SUPPORT_ZONE_H
#define SUPPORT_ZONE_H

#include <stdbool.h>
#include <stddef.h>

#define ZONE_SERVERS 2

/* What a name server does with a question for an entry, or with all (zone_server()). */
enum zone_way {
    ZONE_ANSWERS,
    ZONE_SILENT,
    ZONE_REFERS,     /* neither an authority nor a resolver, and no record */
    ZONE_TRUNCATES,  /* datagrams; answers by TCP */
    ZONE_NO_OPT,     /* FORMERR to queries with an OPT record */
    ZONE_LIES_FIRST, /* with another ID, another question, and half an answer before the true one */
    ZONE_ONLY_LIES   /* datagrams; without end */
};

struct zone_entry {
    char name[64];
    int type;
    enum zone_way way;
    unsigned rcode;
    unsigned cut; /* bytes missing at the end */
    unsigned count;
    unsigned char records[4096];
    size_t len;
};

/*
 * zone_open(n) / zone_close():
 * Have names looked up at ${n} name servers / end them.
 *
 * Thread: the test's
 * Errors: the test fails
 */
void zone_open(unsigned n);
void zone_close(void);

/*
 * zone_server(i, way, rcode) / zone_kill(i) / zone_revive():
 * Name server ${i} does this with all questions / is not there, and ICMP says so / all are there.
 *
 * Thread: the test's
 */
void zone_server(unsigned i, enum zone_way way, unsigned rcode);
void zone_kill(unsigned i);
void zone_revive(void);

/*
 * zone_add(name, type):
 * Add an entry without records. Questions for others are answered with NXDOMAIN.
 *
 * Thread: the test's
 * Owns:   the zone keeps it; change it only while nobody asks
 */
struct zone_entry *zone_add(const char *name, int type);

/*
 * zone_put(e, owner, type, ttl_s, data, len):
 * Add a record. ${owner}: labels with their lengths in front, "\3www\4test", or NULL: the name of
 * the question, by a pointer.
 *
 * Thread: the test's
 */
void zone_put(struct zone_entry *e, const char *owner, int type, unsigned ttl_s, const void *data,
              size_t len);

/*
 * zone_asked() / zone_count(text) / zone_forget():
 * All questions so far, as `name/type@server ` each; those by TCP as `name/type@server+tcp ` / how
 * often ${text} is among them / begin a new log.
 *
 * Thread: the test's, while nobody asks
 */
const char *zone_asked(void);
unsigned zone_count(const char *text);
void zone_forget(void);

#endif

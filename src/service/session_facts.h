/*
 * service/session_facts: values of a session that only some access logs write.
 *
 * A session has them only if a log of its listener asks for them (access_log_format_asks()), or if
 * there are several logs: other sessions pay neither memory nor system calls. For them ${f} is
 * NULL. Leg 0 is the client's, 1 the server's.
 */
#ifndef SERVICE_SESSION_FACTS_H
#define SERVICE_SESSION_FACTS_H

#include <stdint.h>

struct access_log_record;
struct address;
struct session_facts;

#define SESSION_FACTS_LEGS 2
#define SESSION_FACTS_LOGS 8

/* session_facts_create(): values of a session; NULL: no memory. */
struct session_facts *session_facts_create(void);

/* session_facts_destroy(f): free ${f} or NULL. Thread: owner */
void session_facts_destroy(struct session_facts *f);

/* session_facts_keep(f, asks): keep the values ${asks} (enum access_log_ask). Thread: owner */
void session_facts_keep(struct session_facts *f, unsigned asks);

/*
 * session_facts_set_number(f, i, number) / session_facts_number(f, i):
 * Set / return the number of the session in log ${i} of its service; 0: none.
 *
 * Thread: owner
 */
void session_facts_set_number(struct session_facts *f, unsigned i, uint64_t number);
uint64_t session_facts_number(const struct session_facts *f, unsigned i);

/* session_facts_measure(f, leg, fd): ask the kernel about ${leg}, open at ${fd}. Thread: owner */
void session_facts_measure(struct session_facts *f, unsigned leg, int fd);

/* session_facts_linked(f, fd): the server is connected at ${fd}. Thread: owner */
void session_facts_linked(struct session_facts *f, int fd);

/* session_facts_fin(f, leg): the peer of ${leg} has sent end of file. Thread: owner */
void session_facts_fin(struct session_facts *f, unsigned leg);

/*
 * session_facts_fin_at_ns(f, leg) / session_facts_set_fin(f, leg, at_ns):
 * Return / set when the peer of ${leg} sent end of file; 0: it has not.
 *
 * Thread: owner
 */
int64_t session_facts_fin_at_ns(const struct session_facts *f, unsigned leg);
void session_facts_set_fin(struct session_facts *f, unsigned leg, int64_t at_ns);

/* session_facts_count(f, bytes_in, bytes_out): set the server's bytes so far. Thread: owner */
void session_facts_count(struct session_facts *f, uint64_t bytes_in, uint64_t bytes_out);

/*
 * session_facts_tried(f, a, error) / session_facts_spare(f, a) / session_facts_undone(f, error):
 * Connecting to ${a} ended with ${error} / a spare connection to ${a} is used / the TLS handshake
 * on the last connection failed.
 *
 * Thread: owner
 */
void session_facts_tried(struct session_facts *f, const struct address *a, int error);
void session_facts_spare(struct session_facts *f, const struct address *a);
void session_facts_undone(struct session_facts *f, int error);

/*
 * session_facts_describe(f, r, began_at_ns):
 * Add the values to ${r}, for a session that began at ${began_at_ns}. They live as long as ${f}.
 *
 * Thread: owner
 */
void session_facts_describe(const struct session_facts *f, struct access_log_record *r,
                            int64_t began_at_ns);

#endif

/*
 * support/names: host names that mean what a test says.
 *
 * Every test program is linked with a getaddrinfo() in front of the C library's, which passes a
 * name on unless the test has said something about it; and with a res_ninit() that fails, so that
 * DNS is not asked past it.
 */
#ifndef SUPPORT_NAMES_H
#define SUPPORT_NAMES_H

/*
 * In place of addresses: there is no such name; nobody answers until names_set() says something
 * else.
 */
#define NAMES_UNKNOWN ""
#define NAMES_SILENT  "silent"

/*
 * names_set(host, addresses):
 * From now on ${host} is at these numeric ${addresses}, with commas between.
 *
 * Thread: any
 * Owns:   both must live until the test ends
 * Errors: none (the test fails)
 */
void names_set(const char *host, const char *addresses);

/*
 * names_asked():
 * How often a name was asked for so far, whichever it was.
 *
 * Thread: any
 */
unsigned names_asked(void);

/*
 * names_allow_dns():
 * From now on res_ninit() is the C library's.
 *
 * Thread: any
 */
void names_allow_dns(void);

/*
 * names_use_servers(ports, n):
 * As names_allow_dns(), with name servers on these ports of 127.0.0.1.
 *
 * Thread: any
 * Units:  ${n} at most 3
 */
void names_use_servers(const unsigned *ports, unsigned n);

#endif

/*
 * support/sockets: the other end of the sockets under test.
 *
 * A descriptor that a test talks through blocks, and fails the test when nothing comes for ten
 * seconds. Long streams are a pattern whose byte depends on its place, so that one lost, doubled or
 * moved is found.
 */
#ifndef SUPPORT_SOCKETS_H
#define SUPPORT_SOCKETS_H

#include <stddef.h>
#include <stdint.h>

#include "net/address.h"

/*
 * sockets_tcp(ours, theirs) / sockets_unix(ours, theirs):
 * A connected pair: ${ours}, non-blocking, for the code under test; ${theirs} for the test.
 *
 * Thread: the test's
 * Owns:   the caller owns both
 * Errors: none (the test fails)
 */
void sockets_tcp(int *ours, int *theirs);
void sockets_unix(int *ours, int *theirs);

/*
 * sockets_unix_small(ours, theirs):
 * As sockets_unix(); the kernel keeps only a few kilobytes. (With a tiny TCP window it would wait
 * for its timers.)
 *
 * Thread: the test's
 * Owns:   the caller owns both
 * Errors: the test fails
 */
void sockets_unix_small(int *ours, int *theirs);

/*
 * sockets_small(fd):
 * Let the kernel keep only a few kilobytes in each direction of ${fd}.
 *
 * Thread: any
 * Errors: none (the test fails)
 */
void sockets_small(int fd);

/*
 * sockets_loopback(out, port):
 * 127.0.0.1 with ${port}.
 *
 * Thread: any
 */
void sockets_loopback(struct address *out, unsigned port);

/*
 * sockets_listen(out, backlog) / sockets_bound(out) / sockets_bound_everywhere(out):
 * A listening socket on a free loopback port; one that is only bound: connecting to it is refused,
 * and as long as it is open nobody gets the port but who binds to it with SO_REUSEADDR / on any
 * IPv4 address, for tests that listen on the wildcard.
 *
 * Thread: any
 * Owns:   the caller owns the descriptor
 * Errors: none (the test fails)
 */
int sockets_listen(struct address *out, int backlog);
int sockets_bound(struct address *out);
int sockets_bound_everywhere(struct address *out);

/*
 * sockets_listen_deaf(out, filler):
 * As sockets_listen(), with a full backlog: connecting to it takes forever.
 *
 * Thread: any
 * Owns:   the caller owns the descriptor and that in ${filler}
 * Errors: the test fails
 */
int sockets_listen_deaf(struct address *out, int *filler);

/*
 * sockets_accept(fd) / sockets_connect(a):
 * The next client of ${fd}; a connection to ${a}.
 *
 * Thread: any
 * Owns:   the caller owns the descriptor
 * Errors: none (the test fails)
 */
int sockets_accept(int fd);
int sockets_connect(const struct address *a);

/*
 * sockets_address(text):
 * The address that ${text}, one IP address with or without a port, stands for.
 *
 * Thread: any
 * Errors: the test fails
 */
struct address sockets_address(const char *text);

/*
 * sockets_path(out, name):
 * The unix socket address /tmp/reactord-test-PID-${name}, with nothing there.
 *
 * Thread: the test's
 */
void sockets_path(struct address *out, const char *name);

/*
 * sockets_say(fd, text) / sockets_hear(fd, text):
 * Send ${text}; receive as many bytes and see that they are ${text}.
 *
 * Thread: any
 * Errors: none (the test fails)
 */
void sockets_say(int fd, const char *text);
void sockets_hear(int fd, const char *text);

/*
 * sockets_say_bytes(fd, data, len):
 * Send ${len} bytes.
 *
 * Thread: any
 * Errors: the test fails
 */
void sockets_say_bytes(int fd, const void *data, size_t len);

/*
 * sockets_pattern(data, from, len):
 * Bytes ${from} to ${from} + ${len} of the pattern.
 *
 * Thread: any
 */
void sockets_pattern(uint8_t *data, size_t from, size_t len);

/*
 * sockets_say_pattern(fd, from, len) / sockets_hear_pattern(fd, from, len):
 * Send and receive that part of the pattern.
 *
 * Thread: any
 * Errors: none (the test fails)
 */
void sockets_say_pattern(int fd, size_t from, size_t len);
void sockets_hear_pattern(int fd, size_t from, size_t len);

/*
 * sockets_stuff(fd, from):
 * Send the pattern from ${from} on until nothing was taken for 150 ms, and say how much was.
 *
 * Thread: any
 * Errors: bytes sent
 */
size_t sockets_stuff(int fd, size_t from);

/*
 * sockets_hear_end(fd) / sockets_hear_reset(fd) / sockets_hear_nothing(fd):
 * The next thing to come is end of file, is a reset, or has not come yet.
 *
 * Thread: any
 * Errors: none (the test fails)
 */
void sockets_hear_end(int fd);
void sockets_hear_reset(int fd);
void sockets_hear_nothing(int fd);

/*
 * sockets_end(fd) / sockets_reset(fd):
 * Send end of file; close with a reset.
 *
 * Thread: any
 * Owns:   sockets_reset() takes ${fd}
 * Errors: none (the test fails)
 */
void sockets_end(int fd);
void sockets_reset(int fd);

/*
 * sockets_option(fd, level, name):
 * What getsockopt(2) says, for an option that is an int.
 *
 * Thread: any
 * Errors: none (the test fails)
 */
int sockets_option(int fd, int level, int name);

#endif

/*
 * support/spliced: a pair of channels, the bytes of one of which go to the other.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_SPLICED_H
#define SUPPORT_SPLICED_H

#include <stddef.h>

#include "support/probe.h"

struct loop;
struct netloop;

struct spliced {
    struct loop *loop;
    struct netloop *net;
    struct probe from, to; /* all that `from` reads goes to `to` */
};

extern struct spliced spliced;

void spliced_go_on(struct probe *p);

void spliced_open_pair(void (*sockets)(int *ours, int *theirs));

void spliced_start(enum splice_mode mode);

void spliced_close_pair(void);

void spliced_setup(void);

void spliced_teardown(void);

unsigned spliced_now(void);

void spliced_pass(size_t at, size_t len);

void spliced_pass_long(void);

#endif

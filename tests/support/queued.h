/*
 * support/queued: clients that wait in the queues of listeners whose bosses are busy.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_QUEUED_H
#define SUPPORT_QUEUED_H

#include "net/address.h"

#define CLIENTS 40

struct queued {
    int clients[CLIENTS];
    struct address one, all;
};

extern struct queued queued;

/* No client is accepted meanwhile. */
void queued_block_bosses(void);

void queued_unblock_bosses(void);

void queued_connect_clients(unsigned at);

void queued_expect_clients_served(void);

/* A change that failed has left all as it was. */
void queued_expect_unchanged(unsigned descriptors);

#endif

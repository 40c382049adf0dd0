#include "support/queued.h"

#include <check.h>
#include <unistd.h>

#include "engine/loop_group.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/served.h"
#include "support/sockets.h"
#include "support/tasks.h"
#include "support/until.h"

struct queued queued;
static struct tasks_block blocks[2];

void queued_block_bosses(void)
{
    for (unsigned i = 0; i < 2; i++)
        tasks_block_begin(&blocks[i], loop_group_at(served.boss, i));
}

void queued_unblock_bosses(void)
{
    for (unsigned i = 0; i < 2; i++)
        tasks_block_end(&blocks[i]);
}

void queued_connect_clients(unsigned at)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        queued.clients[i] = sockets_connect(&served.addresses[at]);
}

void queued_expect_clients_served(void)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        sockets_say(queued.clients[i], "hello");
        sockets_hear(queued.clients[i], "hello");
        close(queued.clients[i]);
    }
    UNTIL(atomic_load(&served.ended) == atomic_load(&served.accepted));
}

void queued_expect_unchanged(unsigned descriptors)
{
    ck_assert_uint_eq(process_descriptors(), descriptors);
    close(served_client(0));
    UNTIL(atomic_load(&served.ended) == atomic_load(&served.accepted));
    ck_assert_uint_eq(atomic_load(&served.stopped), 0);
}

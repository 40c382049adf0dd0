#include "support/hangups.h"

#include <check.h>
#include <stdatomic.h>
#include <unistd.h>

#include "engine/loop_internal.h"
#include "net/hangup.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/until.h"

struct hangups hangups;
static unsigned before;

static void do_leave_all(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < WATCHES; i++)
        hangup_leave(&hangups.hangup, &hangups.places[i].watch);
}

void hangups_on_hangup(struct hangup_watch *w)
{
    struct place *p = CONTAINER_OF(w, struct place, watch);

    atomic_fetch_add(&p->events, 1);
    if (p->leave_others)
        do_leave_all(NULL);
}

void hangups_do_listen(void *arg)
{
    struct place *p = arg;

    hangup_listen(&hangups.hangup, &p->watch, p->ours);
}

void hangups_do_leave(void *arg)
{
    struct place *p = arg;

    hangup_leave(&hangups.hangup, &p->watch);
}

struct question {
    const struct place *place;
    bool answer;
};

static void do_ask(void *arg)
{
    struct question *q = arg;

    q->answer = q->place->watch.registered;
}

bool hangups_registered(const struct place *p)
{
    struct question q = {.place = p};

    loop_runner_call(hangups.loop, do_ask, &q);
    return q.answer;
}

void hangups_setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    before = process_descriptors();
    hangups.loop = loop_runner_create();
    ck_assert_int_eq(hangup_open(&hangups.hangup, hangups.loop), 0);
    for (unsigned i = 0; i < WATCHES; i++) {
        hangups.places[i] = (struct place){.ours = -1, .theirs = -1};
        hangup_watch_init(&hangups.places[i].watch, hangups_on_hangup);
    }
}

void hangups_teardown(void)
{
    loop_runner_call(hangups.loop, do_leave_all, NULL);
    fault_plan(FAULT_EPOLL_CTL, 0, 0, 0);
    loop_runner_stop(hangups.loop);
    hangup_close(&hangups.hangup);
    loop_destroy(hangups.loop);
    for (unsigned i = 0; i < WATCHES; i++) {
        if (hangups.places[i].ours >= 0)
            close(hangups.places[i].ours);
        if (hangups.places[i].theirs >= 0)
            close(hangups.places[i].theirs);
    }
    ck_assert_uint_eq(process_descriptors(), before);
}

struct place *hangups_paused(unsigned i, bool unix_peer)
{
    struct place *p = &hangups.places[i];

    if (unix_peer)
        sockets_unix(&p->ours, &p->theirs);
    else
        sockets_tcp(&p->ours, &p->theirs);
    loop_runner_call(hangups.loop, hangups_do_listen, p);
    return p;
}

struct place *hangups_registered_place(unsigned i, bool unix_peer)
{
    struct place *p = hangups_paused(i, unix_peer);

    UNTIL(hangups_registered(p));
    return p;
}

void hangups_reset(struct place *p)
{
    sockets_reset(p->theirs);
    p->theirs = -1;
}

void hangups_do_listen_end(void *arg)
{
    struct place *p = arg;

    hangup_listen(&hangups.hangup, &p->watch, p->ours);
    hangup_listen_end(&hangups.hangup, &p->watch);
}

void hangups_do_reset_all(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < WATCHES; i++)
        hangups_reset(&hangups.places[i]);
}

/*
 * net/idle_watch: a socket that nobody uses yet: what its peer does is told, and nothing is read.
 */
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/idle_watch.h"
#include "support/loop_runner.h"
#include "support/probe.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

static struct loop *loop;
static struct netloop *net;
static struct idle_watch idle_watch;
static atomic_uint spoke, ended;
static int theirs;
static unsigned before;

static void on_event(struct idle_watch *s, enum sock_peek what)
{
    atomic_fetch_add(what == SOCK_READABLE ? &spoke : &ended, 1);
    idle_watch_rest(s);
}

static void do_watch(void *arg)
{
    idle_watch_init(&idle_watch, net, on_event);
    idle_watch_watch(&idle_watch, *(int *)arg);
}

static void do_close(void *arg)
{
    (void)arg;
    idle_watch_close(&idle_watch);
    idle_watch_close(&idle_watch); /* which has none any more */
}

static void do_take(void *arg)
{
    *(int *)arg = idle_watch_take(&idle_watch);
}

static void do_peek(void *arg)
{
    *(enum sock_peek *)arg = idle_watch_peek(&idle_watch);
}

static enum sock_peek peek(void)
{
    enum sock_peek what;

    loop_runner_call(loop, do_peek, &what);
    return what;
}

static void setup(void)
{
    int ours;

    before = process_descriptors();
    loop = loop_runner_create();
    net = probe_net(loop);
    atomic_store(&spoke, 0);
    atomic_store(&ended, 0);
    sockets_tcp(&ours, &theirs);
    loop_runner_call(loop, do_watch, &ours);
}

static void teardown(void)
{
    loop_runner_call(loop, do_close, NULL);
    loop_runner_stop(loop);
    netloop_destroy(net);
    loop_destroy(loop);
    if (theirs >= 0)
        close(theirs);
    ck_assert_uint_eq(process_descriptors(), before);
}

/* The loop may still be taking it out of its epoll instance. */
static void do_close_taken(void *arg)
{
    close(*(int *)arg);
}

GROUP(idle_watch, setup, teardown);

TEST(idle_watch, silent_peer_is_not_reported)
{
    PAUSE_MS(30);
    ck_assert_uint_eq(atomic_load(&spoke) + atomic_load(&ended), 0);
    ck_assert_int_eq(peek(), SOCK_SILENT);
}

TEST(idle_watch, bytes_of_the_peer_are_reported_and_left_unread)
{
    char text[5];
    int fd;

    sockets_say(theirs, "hello");
    UNTIL(atomic_load(&spoke) == 1);
    ck_assert_int_eq(peek(), SOCK_READABLE);
    loop_runner_call(loop, do_take, &fd);
    ck_assert_int_eq(recv(fd, text, sizeof(text), 0), sizeof(text));
    ck_assert_mem_eq(text, "hello", sizeof(text));
    ck_assert_uint_eq(atomic_load(&spoke), 1);
    loop_runner_call(loop, do_close_taken, &fd);
}

TEST_EACH(idle_watch, end_of_file_or_reset_is_reported_also_behind_bytes, 3)
{
    if (_i == 1)
        sockets_say(theirs, "bye");
    if (_i == 2)
        sockets_reset(theirs);
    else
        sockets_end(theirs);
    UNTIL(peek() == SOCK_ENDED);
    UNTIL(atomic_load(&ended) + atomic_load(&spoke) == 1);
    if (_i == 2)
        theirs = -1;
}

TEST(idle_watch, a_socket_that_was_taken_is_the_callers)
{
    int fd;

    loop_runner_call(loop, do_take, &fd);
    ck_assert_int_ge(fd, 0);
    sockets_say(theirs, "hello");
    PAUSE_MS(30);
    ck_assert_uint_eq(atomic_load(&spoke), 0);
    loop_runner_call(loop, do_close_taken, &fd);
    loop_runner_call(loop, do_take, &fd);
    ck_assert_int_eq(fd, -1);
}

TEST(idle_watch, closing_the_watch_sends_an_end_of_file)
{
    loop_runner_call(loop, do_close, NULL);
    sockets_hear_end(theirs);
}

/* net/netloop: what a loop's sockets share. */
#include "net/netloop.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/suite.h"

GROUP(netloop, NULL, NULL);

TEST(netloop, netloop_has_a_loop_a_read_buffer_and_no_pipe_yet)
{
    struct loop *loop = loop_runner_create();
    unsigned before = process_descriptors();
    struct netloop *net;

    ck_assert_int_eq(netloop_create(&net, loop), 0);
    ck_assert_ptr_eq(net->loop, loop);
    ck_assert_ptr_nonnull(net->ev);
    net->scratch[0] = net->scratch[NETLOOP_SCRATCH_BYTES - 1] = 1;
    ck_assert_uint_eq(process_descriptors(), before + 1); /* of net/hangup */
    netloop_destroy(net);
    ck_assert_uint_eq(process_descriptors(), before);
    loop_runner_destroy(loop);
}

TEST(netloop, destroying_a_netloop_closes_its_kept_pipes)
{
    struct loop *loop = loop_runner_create();
    unsigned before = process_descriptors();
    struct netloop *net;
    struct pipe *p;

    ck_assert_int_eq(netloop_create(&net, loop), 0);
    ck_assert_int_eq(pipe_pool_get(&net->pipes, &p), 0);
    pipe_pool_put(&net->pipes, p);
    netloop_destroy(net);
    ck_assert_uint_eq(process_descriptors(), before);
    loop_runner_destroy(loop);
}

TEST(netloop, destroying_null_is_allowed)
{
    netloop_destroy(NULL);
}

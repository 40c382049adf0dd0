#include "net/netloop.h"

#include <errno.h>
#include <stdlib.h>

int netloop_create(struct netloop **out, struct loop *loop)
{
    struct netloop *net = calloc(1, sizeof(*net));
    int rc = -ENOMEM;

    if (!net)
        return rc;
    net->scratch = malloc(NETLOOP_SCRATCH_BYTES);
    if (!net->scratch)
        goto err_free;
    rc = hangup_open(&net->hangup, loop);
    if (rc < 0)
        goto err_free;
    net->loop = loop;
    net->ev = loop_ev(loop);
    pipe_pool_init(&net->pipes);
    *out = net;
    return 0;

err_free:
    free(net->scratch);
    free(net);
    return rc;
}

void netloop_destroy(struct netloop *net)
{
    if (!net)
        return;
    hangup_close(&net->hangup);
    pipe_pool_close(&net->pipes);
    free(net->scratch);
    free(net);
}

/* net/netloop: see netloop.h. */
#include "net/netloop.h"

#include <errno.h>
#include <stdlib.h>

int netloop_create(struct netloop **out, struct loop *loop)
{
    struct netloop *net = malloc(sizeof(*net));

    if (!net)
        return -ENOMEM;
    net->scratch = malloc(NETLOOP_SCRATCH_BYTES);
    if (!net->scratch) {
        free(net);
        return -ENOMEM;
    }
    net->loop = loop;
    net->ev = loop_ev(loop);
    net->descriptors = NULL;
    net->buffered = NULL;
    pipe_pool_init(&net->pipes);
    *out = net;
    return 0;
}

void netloop_destroy(struct netloop *net)
{
    if (!net)
        return;
    pipe_pool_close(&net->pipes);
    free(net->scratch);
    free(net);
}

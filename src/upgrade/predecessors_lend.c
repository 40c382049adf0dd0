/* upgrade/predecessors_lend: hands the predecessors that still drain to the successor. */
#include <string.h>
#include <unistd.h>

#include "upgrade/hand_over.h"
#include "upgrade/predecessors_internal.h"
#include "handover/server_state.h"

static int predecessors_lend_one(struct predecessor *q, struct launch_descriptor *list)
{
    const char *text = q->state ? server_state_text(q->state) : "";
    int rc = hand_over_write_state(&q->state_fd, text, strlen(text));

    if (rc < 0)
        return rc;
    list[0] = (struct launch_descriptor){.fd = q->fd, .name = HAND_OVER_OLD};
    list[1] = (struct launch_descriptor){.fd = q->state_fd, .name = HAND_OVER_OLD_STATE};
    return 0;
}

int predecessors_lend(struct predecessors *p, struct launch_descriptor *list)
{
    MUST(!p->starter && !p->lent);
    p->lent = true;
    predecessors_watch(p);
    list_for_each (node, &p->list) {
        int rc = predecessors_lend_one(LIST_ENTRY(node, struct predecessor, link), list);

        if (rc < 0) {
            predecessors_return(p);
            return rc;
        }
        list += PREDECESSORS_DESCRIPTORS;
    }
    return 0;
}

void predecessors_return(struct predecessors *p)
{
    p->lent = false;
    list_for_each (node, &p->list) {
        struct predecessor *q = LIST_ENTRY(node, struct predecessor, link);

        if (q->state_fd >= 0)
            close(q->state_fd);
        q->state_fd = -1;
    }
    predecessors_watch(p);
}

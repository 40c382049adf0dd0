#include "upgrade/past.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/admin_past.h"
#include "base/log.h"
#include "upgrade/hand_over.h"
#include "upgrade/successor.h"

/* First words of the messages. An older process sends none, and ignores them. */
static const struct past_kind {
    const char *word;
    void (*write)(struct admin *a, FILE *f);
    int (*read)(struct admin *a, char *record, size_t n);
} kinds[PAST_KINDS] = {
    [PAST_HISTORY] = {"history", admin_past_write_history, admin_past_read_history},
    [PAST_EVENTS] = {"events", admin_past_write_events, admin_past_read_events},
};

static void past_send_one(struct admin *a, struct successor *s, const struct past_kind *kind)
{
    FILE *f;
    int fd, rc = hand_over_create_state(&fd, &f);

    if (rc == 0) {
        kind->write(a, f);
        rc = hand_over_finish_state(fd, f);
    }
    if (rc < 0) {
        log_warning("upgrade: no %s for the new process: %s", kind->word, strerror(-rc));
        return;
    }
    successor_report(s, kind->word, fd);
    close(fd);
}

void past_send(struct admin *a, struct successor *s)
{
    for (unsigned i = 0; a && i < PAST_KINDS; i++)
        past_send_one(a, s, &kinds[i]);
}

void past_init(struct past *p)
{
    for (unsigned i = 0; i < PAST_KINDS; i++)
        p->fds[i] = -1;
}

void past_close(struct past *p)
{
    for (unsigned i = 0; i < PAST_KINDS; i++)
        if (p->fds[i] >= 0)
            close(p->fds[i]);
    past_init(p);
}

bool past_keep(struct past *p, const char *text, int fd)
{
    for (unsigned i = 0; i < PAST_KINDS; i++) {
        if (fd < 0 || p->fds[i] >= 0 || !hand_over_is(text, kinds[i].word))
            continue;
        p->fds[i] = fd;
        return true;
    }
    return false;
}

static void past_use_one(int fd, struct admin *a, const struct past_kind *kind)
{
    char *record = NULL;
    size_t n = 0;
    int rc = hand_over_read_bytes(&record, &n, fd);

    if (rc == 0)
        rc = kind->read(a, record, n);
    if (rc < 0)
        log_warning("upgrade: no %s of the process before: %s", kind->word,
                    rc == -EINVAL ? "what it sent is incomplete, or of another version"
                                  : strerror(-rc));
    free(record);
}

void past_use(struct past *p, struct admin *a)
{
    for (unsigned i = 0; a && i < PAST_KINDS; i++)
        if (p->fds[i] >= 0)
            past_use_one(p->fds[i], a, &kinds[i]);
    past_close(p);
}

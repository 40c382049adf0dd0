/* reload/reload_request: answers, confirmation and reversal of reloads. See reload.h. */
#include "reload/reload_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text_stream.h"
#include "config/config_compare.h"
#include "config/config_edits.h"

const struct reload_request reload_by_signal = {.confirm_ns = RELOAD_CONFIRM_AS_CONFIGURED};

static bool reload_is_unconfirmed(const struct reload *r)
{
    return r->state == RELOAD_IDLE && r->confirm_by_ns != CLOCK_NEVER;
}

void reload_status(const struct reload *r, struct reload_status *out)
{
    *out = (struct reload_status){.is_applying =
                                      r->state == RELOAD_LOADING || r->state == RELOAD_APPLYING,
                                  .is_refused = r->refused,
                                  .n_done = r->n_done,
                                  .n_failed = r->n_failed,
                                  .n_reverted = r->n_reverted,
                                  .confirm_by_ns = r->confirm_by_ns,
                                  .n_edits = config_edits_count(r->running)};
}

void reload_answer(struct reload *r, const char *error, const char *lines)
{
    void (*done)(void *cookie, const char *error, const char *lines) = r->request.done;

    r->request.done = NULL;
    if (done)
        done(r->request.cookie, error, lines);
}

void reload_answer_changes(struct reload *r)
{
    struct config_compare_text text;
    char *lines = NULL;
    size_t size;
    FILE *f = open_memstream(&lines, &size);

    for (size_t i = 0; f && i < r->changes->n; i++)
        fprintf(f, "%s\n", config_compare_text(&text, &r->changes->list[i]));
    if (f)
        (void)text_stream_close(f, &lines);
    reload_answer(r, NULL, lines);
    free(lines);
}

int reload_begin_request(struct reload *r, const struct reload_request *request)
{
    if (r->state != RELOAD_IDLE)
        return -EBUSY;
    reload_start(r, request);
    return 0;
}

int reload_revert(struct reload *r, const struct reload_request *request)
{
    if (!reload_is_unconfirmed(r))
        return r->state == RELOAD_IDLE ? -ENOENT : -EBUSY;
    log_event(LOG_RELOAD, LOG_LEVEL_NOTICE,
              "reload: reverted: going back to the previous configuration");
    r->request = *request;
    reload_return(r);
    return 0;
}

int reload_confirm(struct reload *r)
{
    if (!reload_is_unconfirmed(r))
        return r->state == RELOAD_IDLE ? -ENOENT : -EBUSY;
    log_event(LOG_RELOAD, LOG_LEVEL_NOTICE, "reload: the new configuration is confirmed");
    reload_forget_confirmed(r);
    return 0;
}

void reload_drop_request(struct reload *r)
{
    r->request.done = NULL;
}

#include "daemon/start_edits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/log.h"
#include "base/text_stream.h"
#include "config/config_edits.h"
#include "upgrade/hand_over.h"

/* The state stays open: predecessors_attach() reads it, too. */
static int start_edits_find_state(void)
{
    char **names = NULL;
    int n = sd_listen_fds_with_names(0, &names), fd = -1;

    for (int i = 0; i < n; i++) {
        if (fd < 0 && strcmp(names[i], HAND_OVER_STATE) == 0)
            fd = SD_LISTEN_FDS_START + i;
        free(names[i]);
    }
    free(names);
    return fd;
}

static void start_edits_apply(struct config **config, const char *text, FILE *notes)
{
    int rc = config_edits_read(config, text, notes);

    if (rc < 0)
        fprintf(notes, "servers that an administrator added or removed are lost: %s\n",
                strerror(-rc));
    else if (config_edits_count(*config) > 0)
        fprintf(notes, "servers that stay added or removed by an administrator: %u\n",
                config_edits_count(*config));
}

void start_edits_use(struct config **config, char **notes)
{
    int fd = start_edits_find_state();
    char *text = NULL;
    size_t size;
    FILE *f;

    *notes = NULL;
    if (fd < 0 || hand_over_read_state(&text, fd) < 0)
        return; /* predecessors_attach() says it */
    f = open_memstream(notes, &size);
    if (f)
        start_edits_apply(config, text, f);
    if (!f || text_stream_close(f, notes) < 0)
        *notes = NULL;
    free(text);
}

void start_edits_log(char *notes)
{
    char *line;

    while ((line = strsep(&notes, "\n")))
        if (*line != '\0')
            log_event(LOG_UPGRADE, LOG_LEVEL_NOTICE, "upgrade: %s", line);
}

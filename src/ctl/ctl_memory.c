#include "ctl/ctl_memory.h"

#include <stdlib.h>

#include "ctl/ctl_exit.h"

void *ctl_memory_need(void *p)
{
    if (!p) {
        fputs("reactorctl: out of memory\n", stderr);
        exit(CTL_EXIT_FAILED);
    }
    return p;
}

void ctl_memory_text_open(struct ctl_memory_text *t)
{
    t->file = ctl_memory_need(open_memstream(&t->bytes, &t->len));
}

char *ctl_memory_text_close(struct ctl_memory_text *t)
{
    if (fclose(t->file) != 0)
        ctl_memory_need(NULL);
    t->file = NULL;
    return t->bytes;
}

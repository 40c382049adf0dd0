/*
 * ctl/ctl_memory: allocations of a short-lived program. Without memory it exits.
 */
#ifndef CTL_CTL_MEMORY_H
#define CTL_CTL_MEMORY_H

#include <stddef.h>
#include <stdio.h>

/*
 * ctl_memory_need(p):
 * Returns ${p}, the result of an allocation; if NULL, reports and exits with CTL_EXIT_FAILED.
 */
void *ctl_memory_need(void *p) __attribute__((returns_nonnull));

/* A text that grows: write to `file`. */
struct ctl_memory_text {
    char *bytes; /* valid after ctl_memory_text_close() */
    size_t len;
    FILE *file;
};

/*
 * ctl_memory_text_open(t) / ctl_memory_text_close(t):
 * Begin a text / end and return the text, with a NUL behind it.
 *
 * Owns:   the caller frees the returned text
 */
void ctl_memory_text_open(struct ctl_memory_text *t);
char *ctl_memory_text_close(struct ctl_memory_text *t);

#endif

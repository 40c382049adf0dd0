/*
 * ctl/ctl_print: answers as the daemon gave them.
 */
#ifndef CTL_CTL_PRINT_H
#define CTL_CTL_PRINT_H

#include "ctl/ctl_context.h"

/*
 * ctl_print_json(answer):
 * Write the JSON unchanged, and a newline. On a terminal, control characters that JSON allows (DEL,
 * U+0080 to U+009F) become JSON escapes.
 */
void ctl_print_json(const struct ctl_answer *answer);

/*
 * ctl_print_answer(c, answer, print):
 * Write the JSON as it is, or if the user has not asked for that, by ${print}. Returns CTL_EXIT_OK.
 *
 * Owns: drops ${answer}
 */
enum ctl_exit ctl_print_answer(const struct ctl_context *c, struct ctl_answer *answer,
                               void (*print)(const json_t *json));

/* ctl_print_text(answer): write the text unchanged; on a terminal, as ctl_text_put() does. */
void ctl_print_text(const struct ctl_answer *answer);

#endif

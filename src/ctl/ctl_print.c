#include "ctl/ctl_print.h"

#include <stdio.h>
#include <unistd.h>

#include "ctl/ctl_text.h"

#define DEL       0x7f
#define C1_LEAD   0xc2 /* first byte of U+0080 to U+00BF in UTF-8 */
#define C1_FIRST  0x80
#define C1_LAST   0x9f
#define JSON_CODE "\\u%04x"

void ctl_print_json(const struct ctl_answer *answer)
{
    const unsigned char *bytes = (const unsigned char *)answer->body;
    bool is_terminal = isatty(STDOUT_FILENO);

    for (size_t i = 0; i < answer->len; i++)
        if (is_terminal && bytes[i] == DEL) {
            printf(JSON_CODE, DEL);
        } else if (is_terminal && bytes[i] == C1_LEAD && bytes[i + 1] >= C1_FIRST &&
                   bytes[i + 1] <= C1_LAST) {
            printf(JSON_CODE, bytes[i + 1]);
            i++;
        } else {
            putchar(bytes[i]);
        }
    if (answer->len > 0 && bytes[answer->len - 1] != '\n')
        putchar('\n');
}

void ctl_print_text(const struct ctl_answer *answer)
{
    if (isatty(STDOUT_FILENO))
        ctl_text_put(stdout, answer->body, answer->len, true);
    else
        fwrite(answer->body, 1, answer->len, stdout);
}

enum ctl_exit ctl_print_answer(const struct ctl_context *c, struct ctl_answer *answer,
                               void (*print)(const json_t *json))
{
    if (c->prints_json)
        ctl_print_json(answer);
    else
        print(answer->json);
    ctl_client_drop(answer);
    return CTL_EXIT_OK;
}

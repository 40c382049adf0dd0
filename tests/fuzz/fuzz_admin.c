/*
 * Fuzz admin/arguments and admin/host: a query, a body or a Host is taken or refused with a
 * printable reason, and what is taken can be written and is read back as the same.
 *
 * The first byte says what the rest is.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "admin/arguments.h"
#include "admin/host.h"
#include "base/must.h"
#include "net/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_problem(const struct arguments_problem *problem)
{
    size_t len = strnlen(problem->text, sizeof(problem->text));

    MUST(len > 0 && len < sizeof(problem->text));
    for (size_t i = 0; i < len; i++)
        MUST(problem->text[i] >= ' ' && problem->text[i] <= '~');
}

/* ${fields}, freed here, are the same when they are written and read. */
static void again(json_t *fields)
{
    static const char *const names[] = {"a", "limit", NULL};
    struct arguments_problem problem;
    char *text = json_dumps(fields, JSON_COMPACT);
    json_t *copy;

    MUST(text != NULL);
    MUST(arguments_parse_body(&copy, text, strlen(text), &problem) == 0);
    MUST(json_equal(copy, fields));
    if (arguments_check_names(fields, names, &problem) < 0)
        check_problem(&problem);
    free(text);
    json_decref(copy);
    json_decref(fields);
}

static void try_host(const char *text)
{
    struct address local[2];

    MUST(address_parse(local, 2, "192.0.2.7:9") == 1);
    if (host_is_ours(text, local))
        MUST(strpbrk(text, " /@\r\n") == NULL);
    MUST(!host_is_origin(text, NULL));
    (void)host_is_origin(text, "localhost");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arguments_problem problem;
    json_t *fields;
    char *text;
    int rc;

    if (size == 0)
        return 0;
    text = malloc(size);
    MUST(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] % 4 == 0) {
        try_host(text);
        free(text);
        return 0;
    }
    rc = data[0] % 2 == 0 ? arguments_parse_query(&fields, text, &problem)
                          : arguments_parse_body(&fields, text, size - 1, &problem);
    free(text);
    if (rc < 0)
        check_problem(&problem);
    else
        again(fields);
    return 0;
}

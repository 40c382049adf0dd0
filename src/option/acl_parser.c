#include "option/acl_parser.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/read_file.h"
#include "ini/diagnostics.h"
#include "limits/prefix_table.h"
#include "net/cidr.h"

#define BLANKS     " \t\r"
#define LINE_WORDS 3 /* a valid line has two words */

/* Longer than any valid line, without its comment. */
#define LINE_BYTES 256

static int acl_parser_grow(struct acl_parser *t)
{
    size_t capacity = t->capacity > 0 ? 2 * t->capacity : 16;
    struct cidr *blocks = realloc(t->blocks, capacity * sizeof(*blocks));
    struct acl_parser_word *words;
    bool *allow;

    if (!blocks)
        return -ENOMEM;
    t->blocks = blocks;
    allow = realloc(t->allow, capacity * sizeof(*allow));
    if (!allow)
        return -ENOMEM;
    t->allow = allow;
    words = realloc(t->words, capacity * sizeof(*words));
    if (!words)
        return -ENOMEM;
    t->words = words;
    t->capacity = capacity;
    return 0;
}

static int acl_parser_add_block(struct acl_parser *t, const struct cidr *block, bool allow,
                                const struct acl_parser_word *written)
{
    if (t->n == t->capacity && acl_parser_grow(t) < 0)
        return -ENOMEM;
    t->blocks[t->n] = *block;
    t->allow[t->n] = allow;
    t->words[t->n] = *written;
    t->n++;
    return 0;
}

static int acl_parser_refuse_block(char *problem, int rc, const char *word,
                                   const struct cidr *meant)
{
    char text[CIDR_TEXT_BYTES];

    if (rc == -EDOM)
        snprintf(problem, ACL_PARSER_PROBLEM_BYTES,
                 "%s has bits set after its prefix; did you mean %s?", QUOTE_TEXT(word),
                 cidr_format(text, sizeof(text), meant));
    else if (rc == -ERANGE)
        snprintf(problem, ACL_PARSER_PROBLEM_BYTES, "the prefix of %s is longer than the address",
                 QUOTE_TEXT(word));
    else
        snprintf(problem, ACL_PARSER_PROBLEM_BYTES, "%s is not a block of addresses",
                 QUOTE_TEXT(word));
    return -EINVAL;
}

int acl_parser_parse(struct cidr *out, const char *word, char problem[ACL_PARSER_PROBLEM_BYTES])
{
    static const struct cidr all[ACL_PARSER_BLOCKS] = {{.len = 4}, {.len = 16}, {.len = 0}};
    int rc;

    if (strcmp(word, "all") == 0) {
        memcpy(out, all, sizeof(all));
        return ACL_PARSER_BLOCKS;
    }
    rc = cidr_parse(out, word);
    return rc < 0 ? acl_parser_refuse_block(problem, rc, word, out) : 1;
}

int acl_parser_add(struct acl_parser *t, const char *word, bool allow,
                   const struct acl_parser_word *written, char problem[ACL_PARSER_PROBLEM_BYTES])
{
    struct cidr blocks[ACL_PARSER_BLOCKS];
    int n;

    if (t->n + ACL_PARSER_BLOCKS > ACL_PARSER_RULES) {
        snprintf(problem, ACL_PARSER_PROBLEM_BYTES, "too many rules, at most %d", ACL_PARSER_RULES);
        return -E2BIG;
    }
    n = acl_parser_parse(blocks, word, problem);
    for (int i = 0; i < n; i++)
        if (acl_parser_add_block(t, &blocks[i], allow, written) < 0)
            return -ENOMEM;
    return n < 0 ? n : 0;
}

void acl_parser_free(struct acl_parser *t)
{
    free(t->blocks);
    free(t->allow);
    free(t->words);
    free(t->bytes);
    *t = (struct acl_parser){.n = 0};
}

/* If a rule of the word of rules [from, to) applies, mark all of them as applying. */
static void acl_parser_spare_word(uint32_t *by, size_t from, size_t to)
{
    size_t i = from;

    while (i < to && by[i] != i)
        i++;
    for (size_t j = from; i < to && j < to; j++)
        by[j] = (uint32_t)j;
}

int acl_parser_shadowed(unsigned **out, const struct acl_parser *t)
{
    uint32_t *by = malloc((t->n > 0 ? t->n : 1) * sizeof(*by));

    if (!by)
        return -ENOMEM;
    if (prefix_table_covers(by, t->blocks, t->n) < 0) {
        free(by);
        return -ENOMEM;
    }
    for (size_t i = 0; i < t->n; i++)
        if (t->allow[by[i]] == t->allow[i])
            by[i] = (uint32_t)i;
    for (size_t i = 0, from = 0; i < t->n; i++)
        if (i + 1 == t->n || !t->words[from].text || t->words[i + 1].text != t->words[from].text) {
            acl_parser_spare_word(by, from, i + 1);
            from = i + 1;
        }
    *out = by;
    return 0;
}

static unsigned acl_parser_split(char *text, char *words[LINE_WORDS])
{
    unsigned n = 0;
    char *next, *word;

    for (word = strtok_r(text, BLANKS, &next); word != NULL && n < LINE_WORDS;
         word = strtok_r(NULL, BLANKS, &next))
        words[n++] = word;
    return n;
}

static bool acl_parser_is_verdict(const char *word)
{
    return strcmp(word, "allow") == 0 || strcmp(word, "deny") == 0;
}

static const char *acl_parser_misshapen(enum acl_parser_kind kind, char *const *words, unsigned n)
{
    if (kind == ACL_PARSER_BOTH)
        return n == 2 && acl_parser_is_verdict(words[0])
                   ? NULL
                   : "is not a rule (allow or deny, and a block of addresses)";
    if (acl_parser_is_verdict(words[0]))
        return "is for a file of access_rules (here a block of addresses on each line)";
    return n == 1 ? NULL : "is more than one block (a block of addresses on each line)";
}

static struct diagnostics_place acl_parser_place_of(const struct acl_parser_file *file,
                                                    unsigned number)
{
    return (struct diagnostics_place){.line = file->line, .path = file->path, .path_line = number};
}

static int acl_parser_parse_line(struct acl_parser *t, const struct acl_parser_file *file,
                                 unsigned number, const char *bytes, size_t len)
{
    const struct diagnostics_place here = acl_parser_place_of(file, number);
    char text[LINE_BYTES], problem[ACL_PARSER_PROBLEM_BYTES];
    const char *comment = memchr(bytes, '#', len);
    size_t shown = comment ? (size_t)(comment - bytes) : len;
    struct acl_parser_word written = {.line = number};
    char *words[LINE_WORDS];
    const char *what;
    unsigned n;
    bool allow;
    int rc;

    if (shown >= sizeof(text) || memchr(bytes, '\0', shown)) {
        diagnostics_add_in(file->diagnostics, &here, "%s is not a rule",
                           diagnostics_quote_bytes(&(struct diagnostics_quote){{0}}, bytes, shown));
        return 0;
    }
    memcpy(text, bytes, shown);
    text[shown] = '\0';
    n = acl_parser_split(text, words);
    if (n == 0)
        return 0;
    what = acl_parser_misshapen(file->kind, words, n);
    if (what) {
        diagnostics_add_in(file->diagnostics, &here, "%s %s",
                           diagnostics_quote_bytes(&(struct diagnostics_quote){{0}}, bytes, shown),
                           what);
        return 0;
    }
    allow = file->kind == ACL_PARSER_ALLOW || strcmp(words[0], "allow") == 0;
    if (file->kind == ACL_PARSER_BOTH) {
        written.text = bytes + (words[n - 1] - text);
        written.len = (unsigned)strlen(words[n - 1]);
    }
    rc = acl_parser_add(t, words[n - 1], allow, &written, problem);
    if (rc == -EINVAL || rc == -E2BIG)
        diagnostics_add_in(file->diagnostics, &here,
                           "%s (10.0.0.0/8, 192.0.2.1, "
                           "2001:db8::/32, unix or all)",
                           problem);
    return rc == -EINVAL ? 0 : rc;
}

int acl_parser_lines(struct acl_parser *t, const struct acl_parser_file *file, const char *bytes,
                     size_t len)
{
    const char *end = bytes + len;
    unsigned number = 0;
    int rc = 0;

    while (rc == 0 && bytes < end) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        const char *stop = newline ? newline : end;

        rc = acl_parser_parse_line(t, file, ++number, bytes, (size_t)(stop - bytes));
        bytes = newline ? newline + 1 : end;
    }
    return rc == -E2BIG ? 0 : rc;
}

int acl_parser_load(struct acl_parser *t, const struct acl_parser_file *file)
{
    struct file_content whole;
    int rc = read_file(&whole, file->path, ACL_PARSER_FILE_BYTES);

    if (rc == -ENOMEM)
        return rc;
    if (rc < 0) {
        diagnostics_add(file->diagnostics, file->line, "[%s] %s: %s %s", file->section, file->key,
                        QUOTE_TEXT(file->path), whole.problem);
        return 0;
    }
    rc = acl_parser_lines(t, file, whole.bytes, whole.len);
    if (file->kind != ACL_PARSER_BOTH) {
        free(whole.bytes);
        return rc;
    }
    MUST(!t->bytes);
    t->bytes = whole.bytes;
    return rc;
}

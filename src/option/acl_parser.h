/*
 * option/acl_parser: parses access rules in options and files.
 *
 *   10.0.0.0/8   2001:db8::/32   192.0.2.1   unix   all   a block; `all` is every client
 *   file:/etc/reactord/office                             an option's file: one block a line
 *   allow 10.0.0.0/8                                      a rules file's line: verdict and block
 *
 * `#` starts a comment in files.
 */
#ifndef OPTION_ACL_PARSER_H
#define OPTION_ACL_PARSER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"

struct cidr;
struct diagnostics;

/* Prefix of an absolute path in an option. */
#define ACL_PARSER_FILE "file:"

/* Limits of a file; the Internet's routing table has half as many blocks. */
#define ACL_PARSER_FILE_BYTES (64 << 20)
#define ACL_PARSER_RULES      2000000

/* Maximum blocks for one word (`all`). */
#define ACL_PARSER_BLOCKS 3

#define ACL_PARSER_PROBLEM_BYTES 512

/* A word as it was written. Rules of one word (`all`) have the same `text`. */
struct acl_parser_word {
    const char *text; /* not NUL-terminated; NULL: in a list file, not kept */
    unsigned len;
    unsigned line; /* in its file; 0: in an option */
};

/* Ordered rules; a struct of zeros has no rules. */
struct acl_parser {
    struct cidr *blocks;
    bool *allow;
    struct acl_parser_word *words; /* the word of each rule */
    size_t n, capacity;
    char *bytes; /* the file of access_rules, in which its words are */
};

enum acl_parser_kind {
    ACL_PARSER_DENY,
    ACL_PARSER_ALLOW,
    ACL_PARSER_BOTH /* `allow` or `deny` before each block */
};

struct acl_parser_file {
    const char *path;
    enum acl_parser_kind kind;
    const char *section;
    const char *key;
    unsigned line; /* line of the option in the configuration */
    struct diagnostics *diagnostics;
};

/*
 * acl_parser_parse(out, word, problem):
 * Parse ${word} into up to ACL_PARSER_BLOCKS at ${out}; return their number.
 *
 * Errors: -EINVAL (see ${problem})
 */
int acl_parser_parse(struct cidr *out, const char *word,
                     char problem[ACL_PARSER_PROBLEM_BYTES]) NODISCARD;

/*
 * acl_parser_add(t, word, allow, written, problem):
 * Add the rule for ${word}, which was ${written}; `all` adds three rules.
 *
 * Owns:   the text of ${written} must outlive the rules
 * Errors: 0; -EINVAL (see ${problem}); -E2BIG (too many rules, see ${problem}); -ENOMEM
 */
int acl_parser_add(struct acl_parser *t, const char *word, bool allow,
                   const struct acl_parser_word *written,
                   char problem[ACL_PARSER_PROBLEM_BYTES]) NODISCARD;

/*
 * acl_parser_lines(t, file, bytes, len):
 * Add the rules of ${file}, whose content is ${bytes}; report problems.
 *
 * Owns:   with ACL_PARSER_BOTH ${bytes} must outlive the rules
 * Errors: 0 (see diagnostics_count()); -ENOMEM
 */
int acl_parser_lines(struct acl_parser *t, const struct acl_parser_file *file, const char *bytes,
                     size_t len) NODISCARD;

/*
 * acl_parser_load(t, file):
 * Read ${file} and add its rules. If it is unreadable, report that at the option.
 *
 * Thread: as config_reload()
 * Errors: as acl_parser_lines()
 */
int acl_parser_load(struct acl_parser *t, const struct acl_parser_file *file) NODISCARD;

/*
 * acl_parser_shadowed(out, t):
 * Find rules that never apply: an earlier rule with the other verdict covers their block, and
 * likewise all blocks of their word. (*${out})[i] is the number of that rule, or i if rule i, or
 * another of its word, applies.
 *
 * Owns:   the caller frees *${out}
 * Errors: 0; -ENOMEM
 */
int acl_parser_shadowed(unsigned **out, const struct acl_parser *t) NODISCARD;

/* acl_parser_free(t): free the rules and zero ${t}. */
void acl_parser_free(struct acl_parser *t);

#endif

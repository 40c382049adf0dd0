/*
 * daemon/acl_parser: access rules as people write them: blocks in options and in files.
 *
 *   10.0.0.0/8   2001:db8::/32   192.0.2.1   unix   all          a block; `all` is every client
 *   file:/etc/reactord/office                                    in an option: a file with a block
 *                                                                a line
 *   allow 10.0.0.0/8                                             in a rules file: what becomes of
 *   whoever is in the block
 *
 * In files `#` begins a comment. Every problem of a file is told, at its line.
 */
#ifndef CONFIG_ACL_PARSER_H
#define CONFIG_ACL_PARSER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"

struct cidr;
struct diagnostics;

/* How a word of an option begins that names a file; the absolute path follows. */
#define ACL_PARSER_FILE "file:"

/* What files may have at most: room for every prefix of the Internet's routing table, twice. */
#define ACL_PARSER_FILE_BYTES (64 << 20)
#define ACL_PARSER_RULES      2000000

/* The blocks that one word may be: those of `all`. */
#define ACL_PARSER_BLOCKS 3

#define ACL_PARSER_PROBLEM_BYTES 512

/* Rules in their order; zeroed there are none. Freed with acl_parser_free(). */
struct acl_parser {
    struct cidr *blocks;
    bool *allow;
    unsigned *line; /* of the file it stands in; 0: it stands in an option */
    size_t n, room;
};

enum acl_parser_kind {
    ACL_PARSER_DENY,  /* blocks, which are denied */
    ACL_PARSER_ALLOW, /* blocks, which are allowed */
    ACL_PARSER_BOTH   /* `allow` or `deny` before each */
};

/* A file of rules, and the option that names it. */
struct acl_parser_file {
    const char *path;
    enum acl_parser_kind kind;
    const char *section; /* `listen NAME` */
    const char *key;
    unsigned line; /* of the configuration */
    struct diagnostics *diagnostics;
};

/*
 * acl_parser_parse(out, word, problem):
 * The blocks that ${word} is. There is room for ACL_PARSER_BLOCKS in ${out}.
 *
 * Thread: any
 * Errors: how many; -EINVAL (${problem} says what is wrong with ${word})
 */
int acl_parser_parse(struct cidr *out, const char *word,
                     char problem[ACL_PARSER_PROBLEM_BYTES]) NODISCARD;

/*
 * acl_parser_add(t, word, allow, line, problem):
 * Add the rule for ${word} to ${t}: three for `all`.
 *
 * Thread: any
 * Errors: 0; -EINVAL (${problem} says what is wrong with ${word}); -E2BIG (ACL_PARSER_RULES are
 *         there, ${problem} says so); -ENOMEM
 */
int acl_parser_add(struct acl_parser *t, const char *word, bool allow, unsigned line,
                   char problem[ACL_PARSER_PROBLEM_BYTES]) NODISCARD;

/*
 * acl_parser_lines(t, file, bytes, len):
 * Add the rules in ${bytes}, which are those of ${file}. What is wrong with them goes to its
 * report.
 *
 * Thread: any
 * Errors: 0 (ask diagnostics_count()); -ENOMEM
 */
int acl_parser_lines(struct acl_parser *t, const struct acl_parser_file *file, const char *bytes,
                     size_t len) NODISCARD;

/*
 * acl_parser_load(t, file):
 * Read ${file} and add its rules, as acl_parser_lines(). A file that cannot be read is a problem of
 * the option.
 *
 * Thread: before start
 * Errors: as acl_parser_lines()
 */
int acl_parser_load(struct acl_parser *t, const struct acl_parser_file *file) NODISCARD;

/*
 * acl_parser_dead(out, t):
 * Which rule of ${t} can never apply, because one before it decides otherwise for all its block?
 * *${out} has the number of that one for each such rule, and for others their own.
 *
 * Thread: any
 * Owns:   the caller frees *${out}
 * Errors: 0; -ENOMEM
 */
int acl_parser_dead(unsigned **out, const struct acl_parser *t) NODISCARD;

/*
 * acl_parser_free(t):
 * Free what ${t} holds; it is none then.
 *
 * Thread: any
 */
void acl_parser_free(struct acl_parser *t);

#endif

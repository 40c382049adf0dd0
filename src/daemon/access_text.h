/*
 * daemon/access_text: access rules as people write them: blocks in options and in files.
 *
 *   10.0.0.0/8   2001:db8::/32   192.0.2.1   unix   all          a block; `all` is every client
 *   file:/etc/reactord/office                                    in an option: a file with a block a line
 *   allow 10.0.0.0/8                                             in a rules file: what becomes of whoever is in the block
 *
 * In files `#` begins a comment. Every problem of a file is told, at its line.
 */
#ifndef DAEMON_ACCESS_TEXT_H
#define DAEMON_ACCESS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"

struct cidr;
struct report;

/* How a word of an option begins that names a file; the absolute path follows. */
#define ACCESS_TEXT_FILE "file:"

/* What files may have at most: room for every prefix of the Internet's routing table, twice. */
#define ACCESS_TEXT_FILE_BYTES (64 << 20)
#define ACCESS_TEXT_RULES      2000000

/* The blocks that one word may be: those of `all`. */
#define ACCESS_TEXT_BLOCKS 3

#define ACCESS_TEXT_PROBLEM_BYTES 512

/* Rules in their order; zeroed there are none. Freed with access_text_free(). */
struct access_text {
    struct cidr *blocks;
    bool *allow;
    unsigned *line; /* of the file it stands in; 0: it stands in an option */
    size_t n, room;
};

enum access_text_kind {
    ACCESS_TEXT_DENY,  /* blocks, which are denied */
    ACCESS_TEXT_ALLOW, /* blocks, which are allowed */
    ACCESS_TEXT_BOTH   /* `allow` or `deny` before each */
};

/* A file of rules, and the option that names it. */
struct access_text_file {
    const char *path;
    enum access_text_kind kind;
    const char *section; /* `listen NAME` */
    const char *key;
    unsigned line; /* of the configuration */
    struct report *report;
};

/*
 * access_text_parse(out, word, problem):
 * The blocks that ${word} is. There is room for ACCESS_TEXT_BLOCKS in ${out}.
 *
 * Thread: any
 * Errors: how many; -EINVAL (${problem} says what is wrong with ${word})
 */
int access_text_parse(struct cidr *out, const char *word,
                      char problem[ACCESS_TEXT_PROBLEM_BYTES]) MUST_CHECK;

/*
 * access_text_add(t, word, allow, line, problem):
 * Add the rule for ${word} to ${t}: three for `all`.
 *
 * Thread: any
 * Errors: 0; -EINVAL (${problem} says what is wrong with ${word}); -E2BIG (ACCESS_TEXT_RULES are there, ${problem} says so);
 *         -ENOMEM
 */
int access_text_add(struct access_text *t, const char *word, bool allow, unsigned line,
                    char problem[ACCESS_TEXT_PROBLEM_BYTES]) MUST_CHECK;

/*
 * access_text_lines(t, file, bytes, len):
 * Add the rules in ${bytes}, which are those of ${file}. What is wrong with them goes to its report.
 *
 * Thread: any
 * Errors: 0 (ask report_count()); -ENOMEM
 */
int access_text_lines(struct access_text *t, const struct access_text_file *file, const char *bytes,
                      size_t len) MUST_CHECK;

/*
 * access_text_load(t, file):
 * Read ${file} and add its rules, as access_text_lines(). A file that cannot be read is a problem of the option.
 *
 * Thread: before start
 * Errors: as access_text_lines()
 */
int access_text_load(struct access_text *t, const struct access_text_file *file) MUST_CHECK;

/*
 * access_text_dead(out, t):
 * Which rule of ${t} can never apply, because one before it decides otherwise for all its block? *${out} has the number of
 * that one for each such rule, and for others their own.
 *
 * Thread: any
 * Owns:   the caller frees *${out}
 * Errors: 0; -ENOMEM
 */
int access_text_dead(unsigned **out, const struct access_text *t) MUST_CHECK;

/*
 * access_text_free(t):
 * Free what ${t} holds; it is none then.
 *
 * Thread: any
 * Errors: none
 */
void access_text_free(struct access_text *t);

#endif

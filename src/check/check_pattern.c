#include "check/check_pattern_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/parse.h"

#define CHECK_PATTERN_DEPTH   16
#define CHECK_PATTERN_REPEATS 255

/* A part of the expression. */
struct fragment {
    struct check_pattern_set first, last;
    bool is_empty; /* may match no byte */
};

struct builder {
    struct check_pattern *p;
    struct check_pattern_set follow[CHECK_PATTERN_POSITIONS];
    const char *at;
    const char *problem; /* NULL: none so far */
    unsigned depth;
};

static void check_set_add(struct check_pattern_set *s, unsigned position)
{
    s->words[position / 64] |= UINT64_C(1) << position % 64;
}

static struct fragment check_build_fail(struct builder *b, const char *problem)
{
    if (!b->problem)
        b->problem = problem;
    return (struct fragment){.is_empty = true};
}

/* A fragment of one new position, which reads the bytes in ${bytes}. */
static struct fragment check_build_position(struct builder *b, const bool *bytes)
{
    struct fragment f = {.is_empty = false};
    unsigned n = b->p->n;

    if (n == CHECK_PATTERN_POSITIONS)
        return check_build_fail(b, "the expression is too long with its repetitions written out");
    for (unsigned i = 0; i < CHECK_PATTERN_BYTES; i++)
        if (bytes[i])
            check_set_add(&b->p->by_byte[i], n);
    check_set_add(&f.first, n);
    f.last = f.first;
    b->p->n++;
    return f;
}

static void check_build_link(struct builder *b, const struct fragment *from,
                             const struct fragment *to)
{
    for (unsigned i = 0; i < b->p->n; i++)
        if (from->last.words[i / 64] >> i % 64 & 1)
            check_pattern_join(&b->follow[i], &to->first);
}

static struct fragment check_build_then(struct builder *b, const struct fragment *f,
                                        const struct fragment *g)
{
    struct fragment both = {
        .first = f->first, .last = g->last, .is_empty = f->is_empty && g->is_empty};

    check_build_link(b, f, g);
    if (f->is_empty)
        check_pattern_join(&both.first, &g->first);
    if (g->is_empty)
        check_pattern_join(&both.last, &f->last);
    return both;
}

/* Add to ${bytes} those of class ${name}, as in [:name:]; false: unknown. */
static bool check_build_add_class(bool *bytes, const char *name, size_t len)
{
    static const struct {
        const char *name;
        int (*has)(int);
    } classes[] = {{"alpha", isalpha}, {"digit", isdigit}, {"alnum", isalnum},
                   {"upper", isupper}, {"lower", islower}, {"space", isspace},
                   {"blank", isblank}, {"punct", ispunct}, {"print", isprint},
                   {"graph", isgraph}, {"cntrl", iscntrl}, {"xdigit", isxdigit}};

    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        if (strlen(classes[i].name) != len || memcmp(classes[i].name, name, len) != 0)
            continue;
        for (int c = 0; c < 128; c++)
            bytes[c] |= classes[i].has(c) != 0;
        return true;
    }
    return false;
}

/* Read the escape behind a backslash into ${bytes}; return its byte, or -1: a class. */
static int check_build_escape(struct builder *b, bool *bytes)
{
    static const char letters[] = "rnt0", values[] = "\r\n\t";
    const char c = *b->at;
    const char *letter = c != '\0' ? strchr(letters, c) : NULL;
    int byte = (unsigned char)c;

    if (c == '\0') {
        check_build_fail(b, "a backslash at the end");
        return -1;
    }
    b->at++;
    if (letter) {
        byte = values[letter - letters];
    } else if (c == 'x' && parse_hex_digit(b->at[0]) >= 0 && parse_hex_digit(b->at[1]) >= 0) {
        byte = parse_hex_digit(b->at[0]) << 4 | parse_hex_digit(b->at[1]);
        b->at += 2;
    } else if (c == 'd' || c == 's') {
        (void)check_build_add_class(bytes, c == 'd' ? "digit" : "space", 5);
        return -1;
    } else if (c == 'w') {
        (void)check_build_add_class(bytes, "alnum", 5);
        bytes['_'] = true;
        return -1;
    } else if (isdigit((unsigned char)c)) {
        check_build_fail(b, "there are no back-references");
    } else if (isalpha((unsigned char)c)) {
        check_build_fail(b,
                         "unknown escape (\\d, \\w, \\s, \\r, \\n, \\t, \\0 and \\xNN are known)");
    }
    bytes[byte] = true;
    return byte;
}

/* Read one item of a bracket expression, not a range; return as check_build_escape(). */
static int check_build_bracket_item(struct builder *b, bool *bytes)
{
    int byte = (unsigned char)*b->at;

    if (b->at[0] == '[' && b->at[1] == ':') {
        const char *end = strstr(b->at + 2, ":]");

        if (!end || !check_build_add_class(bytes, b->at + 2, (size_t)(end - b->at - 2))) {
            check_build_fail(b, "unknown class in brackets (as in [[:digit:]])");
            return -1;
        }
        b->at = end + 2;
        return -1;
    }
    b->at++;
    if (byte == '\\')
        return check_build_escape(b, bytes);
    bytes[byte] = true;
    return byte;
}

static struct fragment check_build_bracket(struct builder *b)
{
    bool bytes[CHECK_PATTERN_BYTES] = {false}, is_inverted = *b->at == '^';
    const char *start;

    b->at += is_inverted;
    start = b->at;
    while (!b->problem && *b->at != '\0' && (*b->at != ']' || b->at == start)) {
        int low = check_build_bracket_item(b, bytes), high = low;

        if (b->at[0] == '-' && b->at[1] != ']' && b->at[1] != '\0') {
            b->at++;
            high = check_build_bracket_item(b, bytes);
            if (low < 0 || high < low)
                return check_build_fail(b, "a range in brackets is not from low to high");
        }
        for (int c = low; c >= 0 && c <= high; c++)
            bytes[c] = true;
    }
    if (*b->at != ']')
        return check_build_fail(b, "'[' without ']'");
    b->at++;
    for (unsigned c = 0; is_inverted && c < CHECK_PATTERN_BYTES; c++)
        bytes[c] = !bytes[c];
    return check_build_position(b, bytes);
}

static struct fragment check_build_alternatives(struct builder *b);

static struct fragment check_build_group(struct builder *b)
{
    struct fragment f;

    if (++b->depth > CHECK_PATTERN_DEPTH)
        return check_build_fail(b, "groups are nested too deeply");
    if (b->at[0] == '?' && b->at[1] == ':')
        b->at += 2;
    f = check_build_alternatives(b);
    b->depth--;
    if (*b->at != ')')
        return check_build_fail(b, "'(' without ')'");
    b->at++;
    return f;
}

static struct fragment check_build_atom(struct builder *b)
{
    bool bytes[CHECK_PATTERN_BYTES] = {false};
    const char c = *b->at++;

    switch (c) {
    case '(': return check_build_group(b);
    case '[': return check_build_bracket(b);
    case '*':
    case '+':
    case '?':
    case '{': return check_build_fail(b, "nothing to repeat (a backslash makes it a character)");
    case '^':
        return check_build_fail(b, "'^' is not at a start (a backslash makes it a character)");
    case '$': return check_build_fail(b, "'$' is not at an end (a backslash makes it a character)");
    case '.':
        memset(bytes, true, sizeof(bytes));
        bytes['\n'] = false;
        break;
    case '\\': (void)check_build_escape(b, bytes); break;
    default: bytes[(unsigned char)c] = true; break;
    }
    return check_build_position(b, bytes);
}

/* Read the number at b->at; -1: none, or too large. */
static int check_build_number(struct builder *b)
{
    int n = 0;

    if (!isdigit((unsigned char)*b->at))
        return -1;
    while (isdigit((unsigned char)*b->at) && n <= CHECK_PATTERN_REPEATS)
        n = 10 * n + *b->at++ - '0';
    return n <= CHECK_PATTERN_REPEATS ? n : -1;
}

/* Write out ${f}, the atom at ${atom}, ${low} to ${high} times; ${high} -1: without end. */
static struct fragment check_build_copies(struct builder *b, const char *atom, struct fragment f,
                                          int low, int high)
{
    const char *end = b->at;
    int n = high > low ? high : low;

    if (low == 0)
        f.is_empty = true;
    for (int i = 1; i < n && !b->problem; i++) {
        struct fragment g;

        b->at = atom;
        g = check_build_atom(b);
        if (i >= low)
            g.is_empty = true;
        if (high < 0 && i == n - 1)
            check_build_link(b, &g, &g);
        f = check_build_then(b, &f, &g);
    }
    if (high < 0 && n <= 1)
        check_build_link(b, &f, &f);
    b->at = end;
    return f;
}

static struct fragment check_build_bounds(struct builder *b, const char *atom, struct fragment f)
{
    int low = check_build_number(b), high = low;

    if (low >= 0 && *b->at == ',') {
        b->at++;
        high = *b->at == '}' ? -1 : check_build_number(b);
        if (high < 0 && *b->at != '}')
            low = -1;
    }
    if (low < 0 || *b->at != '}' || high == 0 || (high > 0 && high < low))
        return check_build_fail(b, "repetitions are {N}, {N,} and {N,M}, of 1 to 255");
    b->at++;
    return check_build_copies(b, atom, f, low, high);
}

static struct fragment check_build_repeat(struct builder *b)
{
    const char *atom = b->at;
    struct fragment f = check_build_atom(b);
    const char c = *b->at;

    if (b->problem || c == '\0' || !strchr("*+?{", c))
        return f;
    b->at++;
    if (c == '{')
        f = check_build_bounds(b, atom, f);
    if (c == '*' || c == '+')
        check_build_link(b, &f, &f);
    if (c == '*' || c == '?')
        f.is_empty = true;
    if (*b->at != '\0' && strchr("*+?{", *b->at))
        return check_build_fail(b, "two repetitions in a row");
    return f;
}

static bool check_build_at_end(const char *at)
{
    return *at == '\0' || *at == '|' || *at == ')';
}

static struct fragment check_build_sequence(struct builder *b)
{
    static const bool none[CHECK_PATTERN_BYTES],
        ends[CHECK_PATTERN_BYTES] = {['\r'] = true, ['\n'] = true};
    struct fragment f = {.is_empty = true};

    if (check_build_at_end(b->at))
        return check_build_fail(b, "an empty expression, group or alternative");
    if (*b->at == '^') {
        b->at++;
        f = check_build_position(b, none);
        check_pattern_join(&b->p->line_starts, &f.first);
    }
    while (!b->problem && !check_build_at_end(b->at)) {
        bool is_end = *b->at == '$' && check_build_at_end(b->at + 1);
        struct fragment g = is_end ? check_build_position(b, ends) : check_build_repeat(b);

        b->at += is_end;
        f = check_build_then(b, &f, &g);
    }
    return f;
}

static struct fragment check_build_alternatives(struct builder *b)
{
    struct fragment f = check_build_sequence(b);

    while (!b->problem && *b->at == '|') {
        struct fragment g;

        b->at++;
        g = check_build_sequence(b);
        check_pattern_join(&f.first, &g.first);
        check_pattern_join(&f.last, &g.last);
        f.is_empty |= g.is_empty;
    }
    return f;
}

static void check_build_run(struct builder *b)
{
    struct fragment f = check_build_alternatives(b);

    if (*b->at == ')')
        check_build_fail(b, "')' without '('");
    if (f.is_empty || check_pattern_meets(&f.last, &b->p->line_starts))
        check_build_fail(b, "every answer matches, even an empty one");
    b->p->first = f.first;
    b->p->last = f.last;
}

int check_pattern_compile(struct check_pattern **out, struct arena *a, const char *text,
                          const char **problem)
{
    struct builder *b = calloc(1, sizeof(*b));
    struct check_pattern *p = arena_alloc(a, 1, sizeof(*p));
    int rc = -ENOMEM;

    if (!b || !p)
        goto out;
    b->p = p;
    b->at = text;
    check_build_run(b);
    rc = b->problem ? -EINVAL : 0;
    *problem = b->problem;
    p->follow = rc == 0 ? arena_alloc(a, p->n, sizeof(p->follow[0])) : NULL;
    if (rc == 0 && !p->follow)
        rc = -ENOMEM;
    if (rc < 0)
        goto out;
    memcpy(p->follow, b->follow, p->n * sizeof(p->follow[0]));
    *out = p;
out:
    free(b);
    return rc;
}

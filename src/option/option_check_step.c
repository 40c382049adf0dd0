/* option/option_check_step: `check_step.ID`. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/parse.h"
#include "check/check_script.h"
#include "option/option_bytes.h"
#include "option/option_check.h"
#include "option/option_kind.h"
#include "ini/diagnostics.h"

#define BLANKS                " \t"
#define OPTION_CHECK_STEP_MAX 999

static bool option_check_step_read_number(unsigned *out, const char *word, unsigned max)
{
    uint64_t n;

    if (!word || parse_uint(&n, word, max) < 0 || n == 0)
        return false;
    *out = (unsigned)n;
    return true;
}

static int option_check_step_set_bytes(struct option_value *v, struct check_step_conf *step,
                                       const char *text)
{
    uint8_t *data = arena_alloc(v->arena, strlen(text), 1);
    int n;

    if (!data)
        return -ENOMEM;
    n = option_bytes_read(data, v, text);
    if (n < 0)
        return n;
    if (n > CHECK_BYTES_MAX)
        return option_refuse(v, "the text stands for %d bytes, more than %d", n, CHECK_BYTES_MAX);
    step->bytes = (struct check_bytes){.data = data, .len = (size_t)n};
    return 0;
}

static int option_check_step_set_pattern(struct option_value *v, struct check_step_conf *step,
                                         const char *text)
{
    struct check_pattern *pattern;
    struct arena *arena;
    const char *problem = NULL;
    int rc = arena_create(&arena);

    if (rc < 0)
        return rc;
    rc = check_pattern_compile(&pattern, arena, text, &problem);
    arena_release(arena);
    if (rc == -EINVAL)
        return option_refuse(v, "%s: %s", QUOTE_TEXT(text), problem);
    step->pattern = text;
    return rc;
}

/* Refuse HAProxy's kinds of text, as in `expect rstring ^a`. */
static bool option_check_step_is_foreign(struct option_value *v, const char *text)
{
    static const struct {
        const char *kind, *here;
    } kinds[] = {
        {"string", "expect TEXT"},
        {"rstring", "expect ~REGEX"},
        {"binary", "expect TEXT', with bytes as '\\xNN"},
        {"rbinary", "expect ~REGEX', with bytes as '\\xNN"},
    };
    size_t len = strcspn(text, BLANKS);

    for (size_t i = 0; text[len] != '\0' && i < ARRAY_LEN(kinds); i++) {
        if (strlen(kinds[i].kind) != len || memcmp(kinds[i].kind, text, len) != 0)
            continue;
        v->foreign = true;
        option_refuse(v, "'%s' is a word of HAProxy; here it is '%s'", kinds[i].kind,
                      kinds[i].here);
        return true;
    }
    return false;
}

static int option_check_step_set_expect(struct option_value *v, struct check_step_conf *step,
                                        const char *text)
{
    step->kind = *text == '!' ? CHECK_STEP_REFUSE : CHECK_STEP_EXPECT;
    text += *text == '!';
    if (option_check_step_is_foreign(v, text + strspn(text, BLANKS)))
        return -EINVAL;
    if (*text == '~')
        return option_check_step_set_pattern(v, step, text + 1);
    if (*text == '\0')
        return option_refuse(v, "no text follows");
    return option_check_step_set_bytes(v, step, text);
}

static int option_check_step_set_port(struct option_value *v, struct check_step_conf *step,
                                      const char *word)
{
    if (!word)
        return option_refuse(v, "no number follows 'port'");
    if (!option_check_step_read_number(&step->port, word, 65535))
        return option_refuse(v, "%s is not a port from 1 to 65535", QUOTE_TEXT(word));
    return 0;
}

static int option_check_step_set_connect(struct option_value *v, struct check_step_conf *step,
                                         const char *text)
{
    char *list = arena_text(v->arena, text, strlen(text)), *next, *word;

    step->kind = CHECK_STEP_CONNECT;
    if (!list)
        return -ENOMEM;
    for (word = strtok_r(list, BLANKS, &next); word; word = strtok_r(NULL, BLANKS, &next)) {
        int rc = 0;

        if (strcmp(word, "tls") == 0)
            step->tls = true;
        else if (strcmp(word, "port") == 0)
            rc = option_check_step_set_port(v, step, strtok_r(NULL, BLANKS, &next));
        else
            rc = option_refuse(v, "%s is not known", QUOTE_TEXT(word));
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* What is sent may be secret: a reason does not name it. */
static int option_check_step_set_text(struct option_value *v, struct check_step_conf *step,
                                      const char *text)
{
    char *copy = arena_alloc(v->arena, CHECK_STEP_TEXT_BYTES, 1);

    if (!copy)
        return -ENOMEM;
    if (step->kind == CHECK_STEP_SEND)
        text = "send";
    if (strlen(text) < CHECK_STEP_TEXT_BYTES)
        strcpy(copy, text);
    else
        snprintf(copy, CHECK_STEP_TEXT_BYTES, "%.*s...", CHECK_STEP_TEXT_BYTES - 4, text);
    step->text = copy;
    return 0;
}

/* Read the word of ${v}->text, and what follows one blank. */
static int option_check_step_read(struct option_value *v, struct check_step_conf *step)
{
    size_t len = strcspn(v->text, BLANKS);
    const char *rest = v->text + len + (v->text[len] != '\0');

    if (len == 7 && memcmp(v->text, "connect", len) == 0)
        return option_check_step_set_connect(v, step, rest);
    if (len == 6 && memcmp(v->text, "expect", len) == 0)
        return option_check_step_set_expect(v, step, rest);
    if (len != 4 || memcmp(v->text, "send", len) != 0)
        return option_refuse(v, "it begins with no 'connect', 'send' or 'expect'");
    step->kind = CHECK_STEP_SEND;
    return *rest == '\0' ? option_refuse(v, "no text follows")
                         : option_check_step_set_bytes(v, step, rest);
}

/* Insert ${step} in the order of numbers. */
static int option_check_step_insert(struct option_value *v, struct check_conf *conf,
                                    const struct check_step_conf *step)
{
    struct check_step_conf *list = arena_alloc(v->arena, conf->n_steps + 1, sizeof(*list));
    unsigned at = 0;

    if (!list)
        return -ENOMEM;
    if (conf->n_steps == CHECK_STEPS_MAX)
        return option_refuse(v, "there are more than %d steps", CHECK_STEPS_MAX);
    while (at < conf->n_steps && conf->steps[at].number < step->number)
        at++;
    for (unsigned i = 0; i < conf->n_steps; i++)
        list[i + (i >= at)] = conf->steps[i];
    list[at] = *step;
    conf->steps = list;
    conf->n_steps++;
    return 0;
}

static int option_check_step_set(const struct option *o, struct option_value *v)
{
    struct check_conf *conf = option_field(o, v);
    struct check_step_conf step = {.number = 0};
    int rc;

    if (!option_check_step_read_number(&step.number, option_member(o, v->key),
                                       OPTION_CHECK_STEP_MAX))
        return option_refuse(v, "the ID is not a number from 1 to %d", OPTION_CHECK_STEP_MAX);
    rc = option_check_step_read(v, &step);
    if (rc == 0)
        rc = option_check_step_set_text(v, &step, v->text);
    return rc < 0 ? rc : option_check_step_insert(v, conf, &step);
}

static int option_check_step_set_user(const struct option *o, struct option_value *v)
{
    if (!option_kind_is_name(v->text))
        return option_refuse(v, "%s is not such a name", QUOTE_TEXT(v->text));
    memcpy(option_field(o, v), &v->text, sizeof(v->text));
    return 0;
}

const struct option_kind option_check_step = {option_check_step_set, "", 0, NULL};
const struct option_kind option_check_user = {option_check_step_set_user, "", 0, NULL};

#include "option/option_proxy.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "option/option_kind.h"
#include "ini/diagnostics.h"
#include "net/cidr.h"
#include "net/proxy_header.h"

static int option_proxy_parse_block(struct option_value *v, struct cidr *out, const char *word)
{
    char text[CIDR_TEXT_BYTES];

    if (*word == '\0')
        return option_refuse(v, "a block of addresses is missing beside a comma");
    switch (cidr_parse(out, word)) {
    case 0: return 0;
    case -ERANGE: return option_refuse(v, "the prefix of %s is too long", QUOTE_TEXT(word));
    case -EDOM:
        return option_refuse(v, "%s has bits set after its prefix; did you mean %s?",
                             QUOTE_TEXT(word), cidr_format(text, sizeof(text), out));
    default: return option_refuse(v, "%s is not a block of addresses", QUOTE_TEXT(word));
    }
}

static unsigned option_proxy_count_items(const char *list)
{
    unsigned n = 1;

    for (; *list != '\0'; list++)
        n += *list == ',';
    return n;
}

static int option_proxy_set_trusted(const struct option *o, struct option_value *v)
{
    char *list = arena_text(v->arena, v->text, strlen(v->text));
    struct cidr_list found = {
        .list = arena_alloc(v->arena, option_proxy_count_items(v->text), sizeof(*found.list))};

    if (!list || !found.list)
        return -ENOMEM;
    while (list) {
        int rc = option_proxy_parse_block(v, &found.list[found.n], option_kind_next_item(&list));

        if (rc < 0)
            return rc;
        found.n++;
    }
    memcpy(option_field(o, v), &found, sizeof(found));
    return 0;
}

/* The flag that ${word} sets: option_word.value is its offset. */
static bool *option_proxy_find_tlv(const struct option *o, struct proxy_header_conf *conf,
                                   const char *word)
{
    for (const struct option_word *w = o->words; w->word; w++)
        if (strcmp(word, w->word) == 0)
            return (bool *)((char *)conf + w->value);
    return NULL;
}

static int option_proxy_add_tlv(const struct option *o, struct option_value *v,
                                struct proxy_header_conf *found, const char *word)
{
    bool *tlv = option_proxy_find_tlv(o, found, word);

    if (*word == '\0')
        return option_refuse(v, "a word is missing beside a comma");
    if (!tlv)
        return option_refuse(v, "%s is not known", QUOTE_TEXT(word));
    if (*tlv)
        return option_refuse(v, "%s is given twice", QUOTE_TEXT(word));
    *tlv = true;
    return 0;
}

static int option_proxy_set_tlvs(const struct option *o, struct option_value *v)
{
    struct proxy_header_conf *conf = option_field(o, v);
    struct proxy_header_conf found = {.crc32c = false};
    char *list = arena_text(v->arena, v->text, strlen(v->text));

    if (!list)
        return -ENOMEM;
    while (list) {
        int rc = option_proxy_add_tlv(o, v, &found, option_kind_next_item(&list));

        if (rc < 0)
            return rc;
    }
    if (found.certificate && !found.ssl)
        return option_refuse(v, "certificate is a part of ssl, which is missing");
    found.version = conf->version;
    *conf = found;
    return 0;
}

const struct option_kind option_proxy_trusted = {option_proxy_set_trusted, "", 0, NULL};
const struct option_kind option_proxy_tlvs = {option_proxy_set_tlvs, "", 0, NULL};

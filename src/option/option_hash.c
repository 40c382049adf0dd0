#include "option/option_hash.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "option/option_kind.h"
#include "ini/diagnostics.h"
#include "net/proxy_header.h"
#include "upstream/upstream.h"

#define TLV "tlv:"
#define HEX "0x"

/* Parse 0xNN, of one or two digits. */
static int option_hash_parse_type(struct option_value *v, uint8_t *out, const char *word)
{
    const char *digits = word + strlen(HEX);
    size_t n = strncmp(word, HEX, strlen(HEX)) == 0 ? strlen(digits) : 0;
    unsigned type = 0;

    for (size_t i = 0; i < n && n <= 2; i++) {
        int digit = parse_hex_digit(digits[i]);

        if (digit < 0)
            n = 0;
        type = type << 4 | (unsigned)digit;
    }
    if (n < 1 || n > 2)
        return option_refuse(v, "%s is not a type from 0x00 to 0xff", QUOTE_TEXT(word));
    if (type == PROXY_HEADER_TLV_CRC32C || type == PROXY_HEADER_TLV_NOOP)
        return option_refuse(v, "%s is %s, which says nothing of a client", QUOTE_TEXT(word),
                             type == PROXY_HEADER_TLV_NOOP ? "padding" : "the checksum");
    *out = (uint8_t)type;
    return 0;
}

static int option_hash_set_key(const struct option *o, struct option_value *v)
{
    struct upstream_hash_key key = {.by = UPSTREAM_HASH_TLV};
    int rc = 0;

    if (strncmp(v->text, TLV, strlen(TLV)) == 0) {
        rc = option_hash_parse_type(v, &key.tlv, v->text + strlen(TLV));
    } else {
        const struct option_word *w = option_kind_find_word(o, v);

        if (!w)
            return -EINVAL;
        key.by = (enum upstream_hash_by)w->value;
    }
    if (rc == 0)
        memcpy(option_field(o, v), &key, sizeof(key));
    return rc;
}

const struct option_kind option_hash_key = {option_hash_set_key, "", 0, NULL};

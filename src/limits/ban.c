#include "limits/ban.h"

#include <stdio.h>
#include <string.h>

const char *ban_offence_word(enum ban_offence offence)
{
    static const char *const words[BAN_OFFENCES] = {[BAN_OFFENCE_LIMIT] = "limit",
                                                    [BAN_OFFENCE_DENIED] = "denied",
                                                    [BAN_OFFENCE_HEADER] = "proxy_header",
                                                    [BAN_OFFENCE_HELLO] = "hello",
                                                    [BAN_OFFENCE_TLS] = "tls"};

    return words[offence];
}

bool ban_offence_of(const char *word, enum ban_offence *out)
{
    for (unsigned i = 0; i < BAN_OFFENCES; i++)
        if (strcmp(word, ban_offence_word(i)) == 0) {
            *out = i;
            return true;
        }
    return false;
}

bool ban_is_of(const struct ban *ban, const struct cidr *block)
{
    return !block || cidr_covers(block, &ban->block) || cidr_covers(&ban->block, block);
}

const char *ban_text(const struct ban *ban, char *text)
{
    cidr_format(text, CIDR_TEXT_BYTES, &ban->block);
    if (ban->block.bits == 8 * ban->block.len)
        *strchr(text, '/') = '\0';
    if (ban->zone > 0)
        snprintf(text + strlen(text), BAN_TEXT_BYTES - strlen(text), "%%%u", ban->zone);
    return text;
}

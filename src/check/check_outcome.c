/* check/check_outcome: outcomes of a check in words. See check/check.h. */
#include <stdio.h>
#include <string.h>

#include "check/check.h"

static const struct {
    const char *text;
    enum check_verdict verdict;
} check_outcomes[CHECK_OUTCOMES] = {
    [CHECK_PASSED] = {"passed", CHECK_FOR},
    [CHECK_REFUSED] = {"connection refused", CHECK_AGAINST},
    [CHECK_UNREACHABLE] = {"cannot be reached", CHECK_AGAINST},
    [CHECK_CONNECT_TIMEOUT] = {"timed out connecting", CHECK_AGAINST},
    [CHECK_RESET] = {"connection reset", CHECK_AGAINST},
    [CHECK_TLS_TIMEOUT] = {"timed out in the TLS handshake", CHECK_AGAINST},
    [CHECK_TLS_FAILED] = {"TLS failed", CHECK_AGAINST},
    [CHECK_CLOSED] = {"closed before the answer", CHECK_AGAINST},
    [CHECK_WRONG_ANSWER] = {"wrong answer", CHECK_AGAINST},
    [CHECK_ANSWER_TIMEOUT] = {"timed out waiting for the answer", CHECK_AGAINST},
    [CHECK_LONG_LINE] = {"the line is too long", CHECK_AGAINST},
    [CHECK_NO_LINE] = {"the answer is no line of text", CHECK_AGAINST},
    [CHECK_NO_SOURCE] = {"source_address is not an address of this host", CHECK_AGAINST},
    [CHECK_NO_PORT] = {"no local port or address to connect from", CHECK_NEITHER},
    [CHECK_NO_RESOURCES] = {"out of descriptors or memory", CHECK_NEITHER},
    [CHECK_CANCELLED] = {"cancelled", CHECK_NEITHER},
};

enum check_verdict check_verdict(enum check_outcome outcome)
{
    return check_outcomes[outcome].verdict;
}

const char *check_outcome_text(enum check_outcome outcome)
{
    return check_outcomes[outcome].text;
}

static void check_quote(char *out, const struct check_result *r)
{
    size_t shown = r->answer_bytes < CHECK_SHOWN_BYTES ? r->answer_bytes : CHECK_SHOWN_BYTES;

    *out++ = '\'';
    for (size_t i = 0; i < shown; i++) {
        *out++ = r->shown[i] != '\0' ? (char)r->shown[i] : '.';
    }
    strcpy(out, shown < r->answer_bytes ? "...'" : "'");
}

const char *check_describe(char *text, size_t size, const struct check_result *result)
{
    char quoted[CHECK_SHOWN_BYTES + sizeof("'...'")];
    const char *what = check_outcome_text(result->outcome);
    bool passed = result->outcome == CHECK_PASSED;

    MUST(size >= CHECK_TEXT_BYTES);
    if (result->outcome == CHECK_TLS_FAILED) {
        snprintf(text, size, "%s", result->why);
    } else if (!passed && result->answer_bytes > 0) {
        check_quote(quoted, result);
        snprintf(text, size, "%s: %s", what, quoted);
    } else if (result->outcome == CHECK_UNREACHABLE || result->outcome == CHECK_NO_RESOURCES) {
        snprintf(text, size, "%s: %s", what, strerror(-result->error));
    } else {
        snprintf(text, size, "%s", what);
    }
    return text;
}

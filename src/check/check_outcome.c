/* check/check_outcome: outcomes of a check in words. See check/check.h. */
#include <stdio.h>
#include <string.h>

#include "check/check.h"
#include "net/sock.h"

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

/* Write `step 2 (expect +PONG): `, if a step of the file failed; return its length. */
static size_t check_describe_step(char *text, size_t size, const struct check_result *result)
{
    if (result->step == 0)
        return 0;
    return (size_t)snprintf(text, size, "step %u (%s): ", result->step, result->step_text);
}

static const char *check_what(const struct check_result *result)
{
    bool has_why = result->why[0] != '\0' &&
                   (result->outcome == CHECK_TLS_FAILED || result->outcome == CHECK_WRONG_ANSWER);

    return has_why ? result->why : check_outcome_text(result->outcome);
}

const char *check_describe(char *text, size_t size, const struct check_result *result)
{
    char quoted[CHECK_SHOWN_BYTES + sizeof("'...'")];
    const char *what = check_what(result);
    size_t len = check_describe_step(text, size, result);

    MUST(size >= CHECK_TEXT_BYTES);
    if (result->outcome != CHECK_PASSED && result->outcome != CHECK_TLS_FAILED &&
        result->answer_bytes > 0) {
        check_quote(quoted, result);
        snprintf(text + len, size - len, "%s: %s", what, quoted);
    } else if (result->outcome == CHECK_UNREACHABLE || result->outcome == CHECK_NO_RESOURCES) {
        snprintf(text + len, size - len, "%s: %s", what, sock_error_text(result->error));
    } else {
        snprintf(text + len, size - len, "%s", what);
    }
    return text;
}

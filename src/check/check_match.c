/* check/check_match: one step's search in an answer. See check/check_script.h. */
#include "check/check_script.h"

void check_match_begin(struct check_match *m, const struct check_step *step, bool at_line_start)
{
    m->matched = 0;
    if (step->pattern)
        check_pattern_begin(step->pattern, &m->set, at_line_start);
    m->http = step->conf.kind == CHECK_STEP_HEADERS ? check_http_in_headers(at_line_start)
                                                    : (struct check_http_state){.at = 0};
}

/* See note: back. */
static bool check_match_bytes(struct check_match *m, const struct check_step *step, uint8_t byte)
{
    const struct check_bytes *expect = &step->conf.bytes;

    while (m->matched > 0 && expect->data[m->matched] != byte)
        m->matched = step->back[m->matched - 1];
    if (expect->data[m->matched] == byte)
        m->matched++;
    return m->matched == expect->len;
}

enum check_match_result check_match_next(struct check_match *m, const struct check_step *step,
                                         const struct check_http_conf *http, uint8_t byte)
{
    bool is_found = false;

    switch (step->conf.kind) {
    case CHECK_STEP_STATUS:
        switch (check_http_next(&m->http, http, byte)) {
        case CHECK_HTTP_MORE: return CHECK_MATCH_MORE;
        case CHECK_HTTP_STATUS: return CHECK_MATCH_FOUND;
        default: return CHECK_MATCH_WRONG;
        }
    case CHECK_STEP_HEADERS: is_found = check_http_next_header(&m->http, byte); break;
    default:
        is_found = step->pattern ? check_pattern_next(step->pattern, &m->set, byte)
                                 : check_match_bytes(m, step, byte);
    }
    return is_found ? CHECK_MATCH_FOUND : CHECK_MATCH_MORE;
}

bool check_match_is_begun(const struct check_match *m, const struct check_step *step)
{
    switch (step->conf.kind) {
    case CHECK_STEP_STATUS:
    case CHECK_STEP_HEADERS:
    case CHECK_STEP_LINE: return true;
    default: return step->pattern ? check_pattern_is_begun(&m->set) : m->matched > 0;
    }
}

#include "stats/access_log_filter.h"

#include "base/hash.h"
#include "base/must.h"
#include "stats/access_log_record.h"

static bool access_log_filter_is_error(enum session_reason reason)
{
    switch (reason) {
    case SESSION_OPEN:
    case SESSION_CLIENT_FIN:
    case SESSION_UPSTREAM_FIN:
    case SESSION_LIFETIME:
    case SESSION_DRAIN:
    case SESSION_KILLED: return false;
    default: return true;
    }
}

static bool access_log_filter_only(enum access_log_only only, const struct access_log_record *r)
{
    switch (only) {
    case ACCESS_LOG_ALL: return true;
    case ACCESS_LOG_ERRORS: return access_log_filter_is_error(r->reason);
    case ACCESS_LOG_DENIED: return r->reason == SESSION_LIMIT;
    case ACCESS_LOG_DATA: return r->bytes_in + r->bytes_out > 0;
    }
    MUST(!"an enum access_log_only");
    return true;
}

bool access_log_filter_takes(const struct access_log_filter *f, const struct access_log_record *r)
{
    if (f->share > 0 && hash_mix(r->connection) >> 32 >= f->share)
        return false;
    return access_log_filter_only(f->only, r);
}

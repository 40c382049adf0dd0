#include "tls/tls_counters.h"

#include "base/must.h"
#include "stats/figure.h"

static const struct figure tls_counters_rows[] = {
    FIGURE_LIVE(struct tls_counters, COUNTER, NUMBER, full, "tls_full", "Full TLS handshakes."),
    FIGURE_LIVE(struct tls_counters, COUNTER, NUMBER, resumed, "tls_resumed",
                "TLS handshakes that resumed a session."),
    FIGURE_LIVE(struct tls_counters, COUNTER, NUMBER, failed, "tls_failed",
                "TLS handshakes that failed, by an alert, a broken record or an end of file."),
    FIGURE_LIVE(struct tls_counters, COUNTER, NUMBER, timed_out, "tls_timed_out",
                "TLS handshakes that were not done in time."),
    FIGURE_LIVE(struct tls_counters, COUNTER, NUMBER, refused, "tls_refused",
                "TLS handshakes that were refused, as too many waited for a thread."),
    FIGURE_LIVE(struct tls_counters, COUNTER, NUMBER, truncated, "tls_truncated",
                "TLS streams that ended without close_notify."),
};

const struct figure_table tls_counters_figures = {.is_not_logged_at_zero = true,
                                                  FIGURE_LIVE_TABLE(0, tls_counters_rows)};

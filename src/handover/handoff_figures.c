#include "handover/handoff_figures.h"

#include "stats/figure.h"

#define HANDOFF_STAYED(reason, key, help)                                                 \
    FIGURE_ROW(struct handoff_figures, stayed[SESSION_STAYS_##reason], key, FIGURE_GAUGE, \
               FIGURE_NUMBER, 0, "Sessions that stayed with the replaced process: " help)

static const struct figure handoff_figures_rows[] = {
    FIGURE_OF(struct handoff_figures, GAUGE, NUMBER, under_way,
              "1 while sessions are handed over."),
    FIGURE_OF(struct handoff_figures, COUNTER, NUMBER, moved,
              "Sessions handed over by the replaced process to its successor."),
    HANDOFF_STAYED(TLS, "stayed_tls", "TLS ends or begins there."),
    HANDOFF_STAYED(CONNECTING, "stayed_connecting", "no server yet."),
    HANDOFF_STAYED(CLOSING, "stayed_closing", "about to end."),
    HANDOFF_STAYED(BUSY, "stayed_busy", "a handler holds bytes, or it is not idle yet."),
    HANDOFF_STAYED(FAULT, "stayed_fault", "faults are injected."),
    HANDOFF_STAYED(MIRROR, "stayed_mirror", "it is mirrored."),
    HANDOFF_STAYED(LEAVING, "stayed_leaving", "its end is set."),
    HANDOFF_STAYED(LOG, "stayed_log", "its access log needs what only that process knows."),
    HANDOFF_STAYED(NAME, "stayed_name", "no listener, upstream or server of that name."),
    HANDOFF_STAYED(CHANGED, "stayed_changed", "other settings of listener, upstream or server."),
    HANDOFF_STAYED(SCARCE, "stayed_scarce", "no memory or descriptors."),
    HANDOFF_STAYED(RECORD, "stayed_record", "its record was refused."),
};

static const struct figure_table handoff_figures_table = {
    .is_not_logged_at_zero = true, FIGURE_TABLE(struct handoff_figures, handoff_figures_rows)};

void handoff_figures_show(const struct handoff_figures *f, struct figure_visitor *v)
{
    const struct figure_object object = {.subject = FIGURE_HANDOFF};

    figure_show(v, &handoff_figures_table, &object, f);
}

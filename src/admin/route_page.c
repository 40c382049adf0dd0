#include "admin/route_page.h"

#include <stdlib.h>
#include <string.h>

#include "admin/admin_answer.h"
#include "base/must.h"

#define PART(file) ".incbin \"src/admin/" file "\"\n"

/* Embed the parts of the page, one behind the other; they are prerequisites in the Makefile. */
__asm__(".section .rodata\n"
        ".local route_page_html, route_page_html_end\n"
        "route_page_html:\n" PART("page_head.html") PART("page.css") PART("page_body.html")
            PART("page_base.js") PART("page_events.js") PART("page_history.js") PART("page_show.js")
                PART("page_tail.html") "route_page_html_end:\n"
                                       ".previous\n");

extern const char route_page_html[] __attribute__((visibility("hidden")));
extern const char route_page_html_end[] __attribute__((visibility("hidden")));

static void route_page_show(struct admin_request *rq)
{
    size_t n = (size_t)(route_page_html_end - route_page_html);
    char *text = malloc(n);

    if (text)
        memcpy(text, route_page_html, n);
    admin_answer_text(rq, 200, "text/html; charset=utf-8", text, n);
}

static const struct admin_route list[] = {
    {"GET", "/", ADMIN_OPEN, NULL, route_page_show},
};

const struct admin_routes route_page = {list, ARRAY_LEN(list)};

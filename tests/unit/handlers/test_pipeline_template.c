/*
 * handlers/pipeline_template: the handlers that are asked for, in their order, with a state each.
 */
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "handlers/pipeline_conf.h"
#include "handlers/pipeline_template.h"
#include "net/channel.h"
#include "support/suite.h"

struct letter {
    struct handler handler;
    struct handler_context *context;
    const struct handler_step *step;
    char odd[3]; /* so that the next state is not aligned by itself */
};

static const struct handler_ops ops = {.name = "letter"};
static unsigned added;

static void letter_add(void *state, struct channel *ch, struct handler_context *context,
                       const struct handler_step *step)
{
    static const struct letter zero = {.context = NULL};
    struct letter *l = state;

    ck_assert_uint_eq((uintptr_t)state % alignof(max_align_t), 0);
    ck_assert_mem_eq(l, &zero, sizeof(zero));
    l->context = context;
    l->step = step;
    memset(l->odd, 'x', sizeof(l->odd));
    pipeline_add(&ch->pipeline, &l->handler, &ops);
    added++;
}

static const struct handler_type shy = {
    .name = "shy", .state_bytes = sizeof(struct letter), .add = letter_add};
static const struct handler_type sharing = {.name = "sharing",
                                            .state_bytes = sizeof(struct letter),
                                            .shared_bytes = sizeof(unsigned),
                                            .add = letter_add};

GROUP(pipeline_plan, NULL, NULL);

TEST(pipeline_plan, handler_type_is_found_by_its_name)
{
    const struct handler_type *type;

    for (unsigned i = 0; (type = pipeline_template_type(i)); i++)
        ck_assert_ptr_eq(pipeline_template_find(type->name), type);
    ck_assert_ptr_nonnull(pipeline_template_find("log"));
    ck_assert_ptr_null(pipeline_template_find("gzip"));
    ck_assert_ptr_null(pipeline_template_find(""));
}

TEST(pipeline_plan, template_without_handlers_has_no_state)
{
    const struct pipeline_conf conf = {.n = 0};
    struct pipeline_template *p;

    ck_assert_int_eq(pipeline_template_create(&p, &conf, NULL, NULL), 0);
    ck_assert_uint_eq(pipeline_template_bytes(p), 0);
    pipeline_template_release(p);
    pipeline_template_release(NULL);
}

static const struct letter *letter_of(const struct handler *h)
{
    return CONTAINER_OF(h, struct letter, handler);
}

TEST(pipeline_plan, handlers_stand_in_their_order_with_states_of_their_own)
{
    const struct pipeline_conf conf = {.list = {&sharing, &shy}, .n = 2};
    struct handler_context context = {.listener = "test"};
    struct channel ch = {.flags = 0};
    struct handler tail;
    struct pipeline_template *p;
    const struct letter *first, *second;
    void *room;

    ck_assert_int_eq(pipeline_template_create(&p, &conf, NULL, NULL), 0);
    room = malloc(pipeline_template_bytes(p)); /* AddressSanitizer sees its end */
    pipeline_init(&ch.pipeline, &ch, &tail, &ops);
    memset(room, 0xa5, pipeline_template_bytes(p));
    pipeline_template_add(p, room, &ch, &context);
    ck_assert_uint_eq(added, 2);
    first = letter_of(ch.pipeline.head);
    second = letter_of(first->handler.next);
    ck_assert_ptr_eq(second->handler.next, &tail);
    ck_assert_ptr_eq(first->step->type, &sharing);
    ck_assert_ptr_eq(second->step->type, &shy);
    ck_assert_ptr_eq(second->context, &context);
    ck_assert_mem_eq(second->step->conf, &conf.fault, sizeof(conf.fault));
    ck_assert_uint_eq(*(unsigned *)first->step->shared, 0);
    free(room);
    pipeline_template_release(p);
}

static unsigned *counter_of(struct pipeline_template *p, struct channel *ch, void *room)
{
    static struct handler_context context = {.listener = "test"};
    static struct handler tail;

    pipeline_init(&ch->pipeline, ch, &tail, &ops);
    pipeline_template_add(p, room, ch, &context);
    return letter_of(ch->pipeline.head)->step->shared;
}

TEST(pipeline_plan, a_successor_continues_the_counters_of_equal_handlers)
{
    const struct pipeline_conf conf = {.list = {&sharing}, .n = 1};
    const struct pipeline_conf longer = {.list = {&sharing, &shy}, .n = 2};
    struct pipeline_template *first, *second;
    struct channel ch = {.flags = 0};
    max_align_t room[64];
    unsigned *counter;

    ck_assert_int_eq(pipeline_template_create(&first, &conf, NULL, NULL), 0);
    ck_assert_int_eq(pipeline_template_create(&second, &longer, NULL, NULL), 0);
    counter = counter_of(first, &ch, room);
    *counter = 7;
    pipeline_template_inherit(second, NULL);
    ck_assert_uint_eq(*counter_of(second, &ch, room), 0);
    pipeline_template_inherit(second, first);
    pipeline_template_release(first);
    ck_assert_uint_eq(*counter_of(second, &ch, room), 7);
    pipeline_template_release(second);
}

TEST(pipeline_plan, template_lives_until_its_last_reference_is_released)
{
    struct pipeline_template *p;
    struct arena *memory;
    char *text;

    ck_assert_int_eq(arena_create(&memory), 0);
    text = arena_text(memory, "x", 1);
    ck_assert_int_eq(pipeline_template_create(&p, &(struct pipeline_conf){.n = 0}, memory, NULL),
                     0);
    arena_release(memory);
    ck_assert_ptr_eq(pipeline_template_hold(p), p);
    pipeline_template_release(p);
    ck_assert_str_eq(text, "x");
    ck_assert_uint_eq(pipeline_template_bytes(p), 0);
    pipeline_template_release(p);
    ck_assert_ptr_null(pipeline_template_hold(NULL));
}

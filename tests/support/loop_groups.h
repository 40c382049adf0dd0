/*
 * support/loop_groups: a group of loops, and how their work is shared.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_LOOP_GROUPS_H
#define SUPPORT_LOOP_GROUPS_H

#include "engine/chooser.h"
#include "support/tasks.h"

struct loop_group;

#define MAX_LOOPS 40

struct loop_groups {
    struct loop_group *group;
    struct tasks_block block, blocks[8];
};

extern struct loop_groups loop_groups;

int loop_groups_create_with(unsigned n, enum chooser_kind chooser);

int loop_groups_create(unsigned n);

void loop_groups_nothing(void *arg);

unsigned loop_groups_ratio_of(unsigned i);

#endif

/* Uses system calls instead of libcap, which would be one more dependency. */
#include "daemon/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Bit in the first word of a capability set. */
#define CAPABILITIES_BIND (1u << CAP_NET_BIND_SERVICE)

_Static_assert(CAP_NET_BIND_SERVICE < 32, "CAPABILITIES_BIND");

struct capabilities {
    struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3];
};

static int capabilities_get(struct capabilities *out)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

    return syscall(SYS_capget, &header, out->words) < 0 ? -errno : 0;
}

static int capabilities_set(const struct capabilities *c)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

    return syscall(SYS_capset, &header, c->words) < 0 ? -errno : 0;
}

int capabilities_survive_user(bool survive)
{
    return prctl(PR_SET_KEEPCAPS, survive, 0, 0, 0) < 0 ? -errno : 0;
}

static bool capabilities_are(const struct capabilities *c, unsigned first)
{
    return c->words[0].permitted == first && c->words[0].effective == first &&
           c->words[0].inheritable == 0 && c->words[1].permitted == 0 &&
           c->words[1].effective == 0 && c->words[1].inheritable == 0;
}

int capabilities_reduce(bool *kept)
{
    struct capabilities now, reduced = {{{0}}};
    unsigned first;
    int rc = capabilities_get(&now);

    if (rc < 0)
        return rc;
    first = now.words[0].permitted & CAPABILITIES_BIND;
    reduced.words[0].permitted = reduced.words[0].effective = first;
    rc = capabilities_set(&reduced);
    if (rc == 0)
        rc = capabilities_get(&now);
    if (rc < 0)
        return rc;
    *kept = first != 0;
    return capabilities_are(&now, first) ? 0 : -EPERM;
}

int capabilities_survive_exec(void)
{
    struct capabilities c;
    int rc;

    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_NET_BIND_SERVICE, 0, 0) == 1)
        return 0; /* already set, by systemd: its SystemCallFilter= may refuse capset(2) */
    rc = capabilities_get(&c);
    if (rc < 0 || (c.words[0].permitted & CAPABILITIES_BIND) == 0)
        return rc;
    c.words[0].inheritable |= CAPABILITIES_BIND;
    rc = capabilities_set(&c);
    if (rc == 0 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_BIND_SERVICE, 0, 0) < 0)
        rc = -errno;
    return rc;
}

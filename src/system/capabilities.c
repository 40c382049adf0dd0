/* Uses system calls instead of libcap, which would be one more dependency. */
#include "system/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(CAP_NET_BIND_SERVICE < 32 && CAP_SYS_ADMIN < 32, "bits of the first word");

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

int capabilities_reduce(unsigned extra, unsigned *kept)
{
    struct capabilities now, reduced = {{{0}}};
    unsigned first;
    int rc = capabilities_get(&now);

    if (rc < 0)
        return rc;
    first = now.words[0].permitted & (CAPABILITIES_BIND | extra);
    reduced.words[0].permitted = reduced.words[0].effective = first;
    rc = capabilities_set(&reduced);
    if (rc == 0)
        rc = capabilities_get(&now);
    if (rc < 0)
        return rc;
    *kept = first;
    return capabilities_are(&now, first) ? 0 : -EPERM;
}

/* What is not set yet of ${wanted}. */
static unsigned capabilities_not_ambient(unsigned wanted)
{
    unsigned missing = 0;

    for (unsigned bit = 0; bit < 32; bit++)
        if ((wanted & 1U << bit) != 0 &&
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, bit, 0, 0) != 1)
            missing |= 1U << bit;
    return missing;
}

int capabilities_shed(unsigned extra)
{
    struct capabilities c;
    unsigned unwanted;
    int rc = capabilities_get(&c);

    if (rc < 0)
        return rc;
    for (unsigned bit = 0; bit < 32; bit++)
        if (((CAPABILITIES_BIND | CAPABILITIES_SOCKETS) & 1U << bit) != 0)
            (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, bit, 0, 0);
    unwanted = CAPABILITIES_SOCKETS & ~extra;
    if (((c.words[0].permitted | c.words[0].inheritable) & unwanted) == 0)
        return 0;
    c.words[0].permitted &= ~unwanted;
    c.words[0].effective &= ~unwanted;
    c.words[0].inheritable &= ~unwanted;
    return capabilities_set(&c);
}

int capabilities_survive_exec(void)
{
    unsigned wanted = CAPABILITIES_BIND | (geteuid() == 0 ? 0 : CAPABILITIES_SOCKETS);
    struct capabilities c;
    int rc = capabilities_get(&c);

    if (rc < 0)
        return rc;
    wanted = capabilities_not_ambient(wanted & c.words[0].permitted);
    if ((wanted & ~c.words[0].inheritable) != 0) { /* systemd's SystemCallFilter= may refuse it */
        c.words[0].inheritable |= wanted;
        rc = capabilities_set(&c);
    }
    for (unsigned bit = 0; bit < 32 && rc == 0; bit++)
        if ((wanted & 1U << bit) != 0 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, bit, 0, 0) < 0)
            rc = -errno;
    return rc;
}

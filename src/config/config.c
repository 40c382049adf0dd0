/* config/config: see config.h; the work is in config_build.c, config_check.c and config_dump.c. */
#include "config/config.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "config/config_compare.h"
#include "config/config_memory.h"
#include "config/config_limits.h"
#include "config/config_resolvers.h"
#include "config/config_tls.h"
#include "ini/diagnostics.h"
#include "ini/ini.h"

int config_create(struct config **out)
{
    struct config *config = NULL;
    struct arena *arena;
    int rc = arena_create(&arena);

    if (rc < 0)
        return rc;
    config = arena_alloc(arena, 1, sizeof(*config));
    if (!config)
        goto err_arena;
    config->memory = arena_alloc(arena, 1, sizeof(*config->memory));
    if (!config->memory)
        goto err_arena;
    config->memory->arena = arena;
    ref_init(&config->memory->references);
    *out = config;
    return 0;

err_arena:
    arena_release(arena);
    return -ENOMEM;
}

static int config_refuse_upgrades(const struct config *config, const struct config *running,
                                  struct diagnostics *diagnostics)
{
    struct config_compare *cmp;
    int rc = config_compare_create(&cmp, running, config);

    if (rc < 0)
        return rc;
    config_compare_refuse(cmp, diagnostics);
    config_compare_destroy(cmp);
    return 0;
}

/* Read and check ${path}; report all problems except -ENOMEM. ${running}: NULL at start. */
static int config_read(struct config *config, const char *path, const struct config *running,
                       struct diagnostics *diagnostics)
{
    int rc = ini_load(&config->memory->ini, path, diagnostics);

    if (rc < 0)
        return rc;
    rc = config_build_all(config, diagnostics);
    if (rc < 0)
        return rc;
    rc = config_access_all(config, diagnostics);
    if (rc < 0)
        return rc;
    rc = config_namespaces_all(config, running, diagnostics);
    if (rc < 0)
        return rc;
    rc = config_check_all(config, diagnostics);
    if (rc < 0)
        return rc;
    rc = config_resolvers_all(config->memory, diagnostics);
    if (rc == 0)
        rc = config_limits_all(config->memory, diagnostics);
    if (rc < 0)
        return rc;
    rc = config_tls_all(config, running, diagnostics);
    if (rc == 0 && running && diagnostics_count(diagnostics) == 0)
        rc = config_refuse_upgrades(config, running, diagnostics);
    if (rc < 0)
        return rc;
    return diagnostics_count(diagnostics) > 0 ? -EINVAL : 0;
}

int config_load(struct config **out, const char *path, FILE *errors)
{
    return config_reload(out, path, NULL, errors);
}

int config_reload(struct config **out, const char *path, const struct config *running, FILE *errors)
{
    struct config *config;
    struct diagnostics *diagnostics;
    int written;
    int rc;

    *out = NULL;
    rc = diagnostics_create(&diagnostics, path);
    if (rc < 0)
        return rc;
    rc = config_create(&config);
    if (rc < 0)
        goto err_report;
    rc = config_read(config, path, running, diagnostics);
    written = diagnostics_write(diagnostics, errors);
    if (rc == 0 && written < 0)
        rc = written;
    if (rc < 0)
        goto err_config;
    diagnostics_destroy(diagnostics);
    *out = config;
    return 0;

err_config:
    config_free(config);
err_report:
    diagnostics_destroy(diagnostics);
    return rc;
}

struct config *config_hold(struct config *config)
{
    ref_hold(&config->memory->references);
    return config;
}

uint64_t config_digest(const struct config *config)
{
    return config->memory->ini->digest;
}

void config_free(struct config *config)
{
    if (!config || !ref_release(&config->memory->references))
        return;
    for (unsigned i = 0; i < config->memory->n_sections; i++)
        arena_release(config->memory->sections[i].arena);
    if (!config->memory->base)
        ini_free(config->memory->ini);
    arena_release(config->memory->arena); /* includes ${config} */
}

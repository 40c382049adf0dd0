#include "admin/admin_field.h"

#include <stdio.h>
#include <string.h>

#include "admin/admin_answer.h"
#include "admin/admin_request.h"
#include "base/clock.h"
#include "base/parse.h"

static json_t *admin_field_value(const struct admin_request *rq, const char *name)
{
    return json_object_get(admin_fields(rq), name);
}

static bool admin_field_refuse(struct admin_request *rq, const char *name, const char *wanted)
{
    admin_answer_error(rq, 400, "'%s' is not %s", name, wanted);
    return false;
}

bool admin_field_has(const struct admin_request *rq, const char *name)
{
    return admin_field_value(rq, name) != NULL;
}

bool admin_field_text(struct admin_request *rq, const char *name, const char **out)
{
    json_t *value = admin_field_value(rq, name);

    if (!value)
        return true;
    if (!json_is_string(value) || json_string_length(value) == 0)
        return admin_field_refuse(rq, name, "a text");
    *out = json_string_value(value);
    return true;
}

bool admin_field_number(struct admin_request *rq, const char *name, uint64_t min, uint64_t max,
                        uint64_t *out)
{
    json_t *value = admin_field_value(rq, name);
    uint64_t n;

    if (!value)
        return true;
    if (json_is_integer(value) && json_integer_value(value) >= 0)
        n = (uint64_t)json_integer_value(value);
    else if (!json_is_string(value) || parse_uint(&n, json_string_value(value), max) < 0)
        n = UINT64_MAX;
    if (n < min || n > max) {
        admin_answer_error(rq, 400, "'%s' is not a number from %llu to %llu", name,
                           (unsigned long long)min, (unsigned long long)max);
        return false;
    }
    *out = n;
    return true;
}

bool admin_field_duration(struct admin_request *rq, const char *name, int64_t min_ns,
                          int64_t max_ns, int64_t *out_ns)
{
    json_t *value = admin_field_value(rq, name);
    int64_t ns;

    if (!value)
        return true;
    if (!json_is_string(value) || parse_duration(&ns, json_string_value(value), max_ns) < 0 ||
        ns < min_ns) {
        admin_answer_error(rq, 400, "'%s' is not a duration from %gs to %gs, such as \"10s\"", name,
                           (double)min_ns / (double)NS_PER_S, (double)max_ns / (double)NS_PER_S);
        return false;
    }
    *out_ns = ns;
    return true;
}

bool admin_field_flag(struct admin_request *rq, const char *name, bool *out)
{
    json_t *value = admin_field_value(rq, name);
    bool flag;

    if (!value)
        return true;
    if (json_is_boolean(value))
        flag = json_is_true(value);
    else if (!json_is_string(value) || parse_bool(&flag, json_string_value(value)) < 0)
        return admin_field_refuse(rq, name, "true or false");
    *out = flag;
    return true;
}

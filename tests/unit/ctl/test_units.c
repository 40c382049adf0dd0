/* ctl/ctl_units: numbers as people read them, never wider than a column. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/must.h"
#include "ctl/ctl_units.h"
#include "support/suite.h"

struct sample {
    double n;
    const char *text;
};

static void assert_text(void (*put)(FILE *out, double n), const struct sample *sample)
{
    char text[64] = "";
    FILE *out = fmemopen(text, sizeof(text), "w");

    ck_assert_ptr_nonnull(out);
    put(out, sample->n);
    fclose(out);
    ck_assert_str_eq(text, sample->text);
}

GROUP(units, NULL, NULL);

static const struct sample bytes[] = {
    {0, "0"},          {812, "812"},
    {1023, "1023"},    {1024, "1.0K"},
    {1536, "1.5K"},    {10239, "10K"},
    {1048064, "1.0M"}, {1048575, "1.0M"},
    {52428800, "50M"}, {1.5 * 1073741824, "1.5G"},
    {1e18, "888P"},    {1.8e19, "16E"},
};

TEST_EACH(units, bytes_have_units_of_1024, ARRAY_LEN(bytes))
{
    assert_text(ctl_units_put_bytes, &bytes[_i]);
}

static const struct sample counts[] = {
    {0, "0"},         {999, "999"},      {99999, "99999"}, {100000, "100k"}, {999400, "999k"},
    {999600, "1.0M"}, {1234567, "1.2M"}, {9.96e6, "10M"},  {-1, "-1"},       {1.8e19, "18E"},
};

TEST_EACH(units, counts_are_exact_up_to_five_digits, ARRAY_LEN(counts))
{
    assert_text(ctl_units_put_count, &counts[_i]);
}

static const struct sample seconds[] = {
    {0, "0s"},        {0.000001, "1us"},  {0.00025, "250us"}, {0.0009996, "1ms"}, {0.012, "12ms"},
    {0.9996, "1.0s"}, {3.24, "3.2s"},     {9.96, "9s"},       {12.9, "12s"},      {59.9, "59s"},
    {60, "1m00s"},    {245, "4m05s"},     {3599.9, "59m59s"}, {3600, "1h00m"},    {11220, "3h07m"},
    {86400, "1d00h"}, {1e9, "11574d01h"}, {-1, "-"},          {1e300, "-"},       {NAN, "-"},
    {INFINITY, "-"},
};

TEST_EACH(units, durations_have_their_two_largest_units, ARRAY_LEN(seconds))
{
    assert_text(ctl_units_put_seconds, &seconds[_i]);
}

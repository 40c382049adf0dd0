/* unit/main: what each unit test runs. */
#include "support/suite.h"

int main(void)
{
    return suite_run();
}

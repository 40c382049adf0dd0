/* option/option_fault: the check of fault injection; its options are rows of [listen NAME]. */
#ifndef OPTION_OPTION_FAULT_H
#define OPTION_OPTION_FAULT_H

struct section;
struct diagnostics;

/* option_fault_refuse(section, diagnostics): report each fault that ${section} injects. */
void option_fault_refuse(const struct section *section, struct diagnostics *diagnostics);

#endif

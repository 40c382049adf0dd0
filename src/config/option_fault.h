/* config/option_fault: the check of fault injection; its options are rows of [listen NAME]. */
#ifndef CONFIG_OPTION_FAULT_H
#define CONFIG_OPTION_FAULT_H

struct config_section;
struct diagnostics;

/* option_fault_refuse(section, diagnostics): report each fault that ${section} injects. */
void option_fault_refuse(const struct config_section *section, struct diagnostics *diagnostics);

#endif

"""report: from the results of a run to plots and a page."""

"""nodes: several reactords behind a router that spreads connections over them (ECMP)."""

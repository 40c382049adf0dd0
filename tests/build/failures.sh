#!/bin/sh
# failures.sh FILE...: of the output of builds and tests, the lines that name what failed, then those that say why, and
# last the daemon's own, which tests that pass also provoke; each once, at most 15.
set -eu
grep -hE '(^|=== )failed: |^FAILED |:[FE]:|^not ok|^SUMMARY: |^ +([A-Za-z]*Error|Failed|TimedOut): |: (fatal )?error: |: runtime error: |\*\*\* \[|: MUST\(|does not hold|^(src|tests|man|conf)/[^ ]+: ' "$@" |
    grep -v '^ok ' |
    cut -c 1-300 |
    awk '!seen[$0]++ { if (/^failed: |^FAILED /) names[++n] = $0
                          else if (/^reactord: /) own[++k] = $0
                          else reasons[++m] = $0 }
         END {
             for (i = 1; i <= m; i++) names[++n] = reasons[i]
             for (i = 1; i <= k; i++) names[++n] = own[i]
             last = n > 15 ? 14 : n
             for (i = 1; i <= last; i++) print names[i]
             if (n > last) print "... and " n - last " more"
         }'

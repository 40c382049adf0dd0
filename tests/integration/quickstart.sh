#!/bin/sh
# quickstart.sh REACTORD CONFIG: start the daemon on the default config, have a real client answered, stop it.
set -eu
reactord=$1 config=$2

"$reactord" -c "$config" &
pid=$!
trap 'kill "$pid" 2>/dev/null || :' EXIT

reply=
for _ in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.2
    reply=$(printf 'hello, reactord' | nc -N -w 5 127.0.0.1 7007) && break
done
kill "$pid"
wait "$pid"
trap - EXIT

echo "nc sent 'hello, reactord' to port 7007 and got '$reply' back"
test "$reply" = 'hello, reactord'
echo "Run it yourself: $reactord -c $config"

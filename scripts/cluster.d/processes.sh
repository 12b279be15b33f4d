# shellcheck shell=bash
# Programs of the node, started in its network namespace and known by process id and start time:
# an id that the system has given to another program since is never taken for ours.

started_at() { awk '$3 != "Z" {print $22}' "/proc/$1/stat" 2> /dev/null || true; }

alive() { # NAME
    local id at
    [ -s "$state/pids/$1" ] || return 1
    read -r id at < "$state/pids/$1"
    [ -n "$at" ] && [ "$(started_at "$id")" = "$at" ]
}

start() { # NAME PROGRAM ARGUMENTS...
    local name=$1
    shift
    alive "$name" && return
    # Both commands become the program itself, so that the id is its own. It must not hold the lock (9).
    setsid nsenter --net=/run/netns/$network "$@" < /dev/null > "$state/log/$name" 2>&1 9>&- &
    echo "$! $(started_at $!)" > "$state/pids/$name"
}

stop() { # NAME...: asks, and insists after ten seconds
    local name id attempt
    for name in "$@"; do
        if alive "$name"; then
            read -r id _ < "$state/pids/$name"
            kill "$id" || true
            for attempt in $(seq 100); do
                alive "$name" || break
                [ "$attempt" = 100 ] && kill -KILL "$id"
                sleep 0.1
            done
        fi
        rm -f "$state/pids/$name"
    done
}

# Waits until the command succeeds; a program that has died meanwhile is not waited for.
await() { # NAME COMMAND...
    local name=$1 deadline=$((SECONDS + 120))
    shift
    until "$@" > /dev/null 2>&1; do
        if ! alive "$name" || [ $SECONDS -gt $deadline ]; then
            tail -n 20 "$state/log/$name" >&2
            alive "$name" || fail "$name has ended; its last words are above, all are in $state/log/$name"
            fail "$name is not ready after two minutes ($*); see $state/log/$name"
        fi
        sleep 0.2
    done
}

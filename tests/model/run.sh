#!/bin/sh
# run.sh DIR [long]: check the models with Spin, and see that each of their mutants is refuted: a model that no mistake
# can break shows nothing. Results go below DIR. `long` adds larger configurations, which take minutes and 8 GiB.
set -eu
models=$(cd "$(dirname "$0")" && pwd)

# What is to come out, the model, its configuration. The first word of a mutant's is what is wrong with it.
cases() {
    small='-DPRODUCERS=2 -DTASKS_EACH=1'
    large='-DPRODUCERS=2 -DTASKS_EACH=2'
    three='-DPRODUCERS=3 -DTASKS_EACH=1'
    more='-DPRODUCERS=3 -DTASKS_EACH=2'
    ends='-DTIMER -DSTOP'

    echo "holds wakeup $small $ends"
    echo "holds wakeup $large"
    echo "holds wakeup -DPLAIN $three"
    echo "holds wakeup -DPLAIN -DAGAIN $large"
    echo "holds wakeup -DFORMULA $small -DTIMER"
    echo "holds gate $more"
    echo "holds gate -DFORMULA $large"
    echo "holds doze -DLOOPS=2 -DTURNS=2"
    echo "holds move -DMOVES=3"
    if [ "$1" = long ]; then
        echo "holds wakeup $large $ends"
        echo "holds wakeup -DPLAIN $more"
        echo "holds wakeup $three"
        echo "holds wakeup -DFORMULA $small $ends"
        echo "holds wakeup -DFORMULA $large"
        echo "holds gate -DFORMULA $more"
        echo "holds doze -DLOOPS=3 -DTURNS=2"
    fi
    for wrong in LOOK_FIRST WAKE_FIRST DONE_EARLY CLEAR_LATE NO_EXCHANGE TAKEN_IS_ALL LAZY_START STOP_IS_NO_NEWS \
        STALE_DEADLINE TAKE_IN_TWO PLAIN_STORE STALE_LINK; do
        echo "fails wakeup -D$wrong $small $ends"
    done
    for wrong in LOOK_FIRST PUSH_FIRST UNTIL_EMPTY UNTIL_NULL CLOSE_LATE REFUSED_STAY PRODUCER_LEAVES; do
        echo "fails gate -D$wrong $large"
    done
    for wrong in LOOK_FIRST LOOPS_FIRST CLEAR_LATE NO_EXCHANGE NO_RING ONLY_TURNS; do
        echo "fails doze -D$wrong -DLOOPS=2 -DTURNS=2"
    done
    for wrong in NO_GATE NO_WAIT LEAVE_FIRST RELEASE_EARLY; do
        echo "fails move -D$wrong -DMOVES=3"
    done
    echo "fails wakeup -DNO_TURN $large"
    echo "fails wakeup -DFORMULA -DLOOK_FIRST $small"
    echo "fails gate -DFORMULA -DREFUSED_STAY $large"
    echo "fails gate -DFORMULA -DTAKE_IN_TWO $large"
}

# Build Spin's verifier for one case and run it; its report is left in the file `report`.
verify() {
    model=$1
    shift
    case " $* " in
    *' -DFORMULA '*) build=-DNFAIR=3 look='-a -f' ;; # every run that is fair to each thread, also those without an end
    *) build=-DSAFETY look=-E ;;                     # the models say themselves what may end how
    esac
    [ "$expected" = holds ] && build="$build -O2" # worth it only if there is much to look at
    spin -a "$@" "$models/$model.pml" >report 2>&1 &&
        ${CC:-cc} -w $build -DCOLLAPSE -DMEMLIM=16384 -o pan pan.c >>report 2>&1 &&
        ./pan $look -m1000000 >report 2>&1
}

# One case, in a directory of its own.
check() {
    dir=$1 expected=$2
    shift 2
    name=$(echo "$*" | sed 's/ -D/ /g')
    dir=$dir/$(echo "$name" | tr ' ' _)
    rm -rf "$dir"
    mkdir "$dir"
    cd "$dir"
    verify "$@" || : # what it found is in the report
    outcome=unknown
    if grep -q 'errors: 0$' report && ! grep -q 'Search not completed\|max search depth' report; then
        outcome=holds
    elif grep -q 'assertion violated\|acceptance cycle' report; then
        outcome=fails
    fi
    if [ $outcome != "$expected" ]; then
        echo "model: $name: $expected was to come out, and not: $outcome; see $dir/report" >&2
        exit 1
    fi
    [ $expected = fails ] || sed -n "s/^ *\([0-9]*\) states, stored.*/model: $name: holds, \1 states/p" report
}

if [ "$1" = case ]; then
    shift
    check "$@"
    exit
fi

mkdir -p "$1"
dir=$(cd "$1" && pwd)
cases "${2:-}" | sed "s|^|$dir |" | xargs -P "$(nproc)" -L 1 "$0" case
echo "model: $(cases "${2:-}" | grep -c ^fails) mutants are refuted"

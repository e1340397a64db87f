#!/bin/sh
# Test the kernels on a GPU, the most valuable tests first. For a machine that is lent for minutes.
#
#   sh experiments/benchmarks/gpu_tests.sh FOLDER
#
# Each group of tests has a time limit of its own. FOLDER gets `GROUP.log`, with the name of every
# test as soon as it ends, so that a limit loses no name, and `summary.txt`: the counts of each group,
# and the names of the tests that failed.
#
# PYTHON=python3           an interpreter with JAX for this GPU, and the packages of `pip install .[test]`
# JAX_PLATFORMS=cpu        try the script without a GPU
# SELECT="lda hdp"         some groups, in this order
# TESTS="-k gamma"         more arguments for pytest
# SECONDS_EACH=20          another limit for each group
set -u
cd "$(dirname "$0")/../.." || exit 1
[ $# = 1 ] || { sed -n 2,14p "$0"; exit 2; }
mkdir -p "$1" && OUT=$(cd "$1" && pwd) || exit 1
export JAX_PLATFORMS="${JAX_PLATFORMS-cuda}" XLA_PYTHON_CLIENT_PREALLOCATE=false
export PYTHONPATH="$PWD:$PWD/kernels"
: > "$OUT/summary.txt"

group() { # name, seconds, arguments for pytest
    name=$1 limit=${SECONDS_EACH:-$2}
    shift 2
    # shellcheck disable=SC2086 # TESTS is a list
    timeout "$limit" "${PYTHON:-python3}" -m pytest -v -p no:cacheprovider "$@" ${TESTS-} \
        > "$OUT/$name.log" 2>&1
    status=$?
    passed=$(grep -c '^\[gw.*%\] PASSED ' "$OUT/$name.log")
    sed -nE 's/^\[gw[0-9]+\] \[ *[0-9]+%\] FAILED /FAILED /p' "$OUT/$name.log" > "$OUT/failed.txt"
    failed=$(wc -l < "$OUT/failed.txt")
    echo "$name: $passed passed, $failed failed, exit $status (124: the limit of $limit s)" \
        | tee -a "$OUT/summary.txt"
    cat "$OUT/failed.txt" >> "$OUT/summary.txt"
    rm "$OUT/failed.txt"
}

of_model() { # name, file, seconds
    group "$1" "$3" -n 2 -m slow "tests/kernels/test_$2.py"
}

for name in ${SELECT:-quick lda hdp supervised author pitman_yor poisson ibp}; do
    case $name in
    quick) group quick 200 -n 4 -m "not slow" tests/kernels ;;
    lda) of_model lda lda 60 ;;
    hdp) of_model hdp hdp_lda 90 ;;
    supervised) of_model supervised supervised_lda 60 ;;
    author) of_model author author_topic 60 ;;
    pitman_yor) of_model pitman_yor pitman_yor_lda 60 ;;
    poisson) of_model poisson poisson_factors 60 ;;
    ibp) of_model ibp ibp_compound_dirichlet 60 ;;
    *) echo "there is no group $name" >&2; exit 2 ;;
    esac
done

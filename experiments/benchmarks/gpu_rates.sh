#!/bin/sh
# Measure kernels and whole fits on a GPU, the most valuable first. For a machine that is lent for minutes.
#
#   sh experiments/benchmarks/gpu_rates.sh FOLDER
#
# Each group has a time limit of its own; in the group `fits` each model has one. FOLDER gets
# `GROUP.json`, which is written anew after each measurement, so that a limit loses only the one that it
# ends; `log.txt`, which the programs printed; and `summary.txt`, how each group ended. All groups
# take more than ten minutes if many models come to their limit.
#
# PYTHON=python3           an interpreter with JAX for this GPU, and the packages of `pip install .`
# BNP_DATA=FOLDER          measure with `nips12.npz` in this folder, not with made-up documents
# JAX_PLATFORMS=cpu        try the script without a GPU
# SELECT="pallas fits"     some groups, in this order
# FITS="--models LDA"      more arguments for gpu_fits.py
# SECONDS_EACH=20          another limit for each group and each model
# QUICK=1                  few made-up tokens, to see that it works
set -u
cd "$(dirname "$0")/../.." || exit 1
[ $# = 1 ] || { sed -n 2,17p "$0"; exit 2; }
mkdir -p "$1" && OUT=$(cd "$1" && pwd) || exit 1
export JAX_PLATFORMS="${JAX_PLATFORMS-cuda}" PYTHONPATH="$PWD:$PWD/kernels"
: > "$OUT/summary.txt"
: > "$OUT/log.txt"

measure() { # name, limit in seconds, 0 for none, script, arguments
    name=$1 limit=$2 script=$3
    shift 3
    timeout "$limit" "${PYTHON:-python3}" "experiments/benchmarks/$script" "$@" ${QUICK:+--quick} \
        --output "$OUT/$name.json" >> "$OUT/log.txt" 2>&1
    status=$?
    echo "$name: exit $status (124: the limit of $limit s)" | tee -a "$OUT/summary.txt"
}

rates() { # name, seconds, arguments
    name=$1 limit=${SECONDS_EACH:-$2}
    shift 2
    measure "$name" "$limit" gpu.py --repeats 3 --seconds 0.5 "$@"
}

for name in ${SELECT:-pallas schedules fits lanes sequential}; do
    case $name in
    pallas) rates pallas 150 --parts sweeps --token-sweeps pallas ;;
    schedules) rates schedules 120 --parts schedules --schedules parallel ;;
    # shellcheck disable=SC2086 # FITS is a list
    fits) measure fits 0 gpu_fits.py --seconds "${SECONDS_EACH:-90}" ${FITS-} ;;
    lanes) rates lanes 100 --parts sweeps --token-sweeps lanes --sweep-topics 64,1024 ;;
    sequential) rates sequential 60 --parts schedules --schedules sequential ;;
    *) echo "there is no group $name" >&2; exit 2 ;;
    esac
done

#!/bin/sh
# Make the results of both papers again from this archive alone, without a network, and compare them with those in it:
#   sh rerun.sh [FOLDER]           FOLDER: where to work; default: rerun, beside this script
#   PYTHON=python3.12 sh rerun.sh  another Python than python3; 3.11 or newer
# Exit status 0: all files that are simulated are equal, byte by byte, or in all numbers to nine digits.
set -eu
cd "$(dirname "$0")"
work=${1:-rerun}
[ ! -e "$work" ] || { echo "$work is there already: remove it, or name another folder"; exit 2; }

echo "1 of 4  checksums of this archive"
sha256sum --check --quiet SHA256SUMS

echo "2 of 4  an environment of the locked versions, in $work/.venv"
cp -R code "$work"
"${PYTHON:-python3}" -m venv "$work/.venv"
python=$(cd "$work" && pwd)/.venv/bin/python
pip="$python -m pip install --quiet --disable-pip-version-check"
$pip --no-index --no-deps wheels/*.whl || {
  echo "the wheels here are for another platform or Python; fetching the same versions for this one"
  $pip --require-hashes -r code/requirements/workflow.txt
}

echo "3 of 4  both papers on simulated boards (a minute or two)"
(cd "$work" && PYTHONPATH=src "$python" -m snakemake --profile profiles/host --config studies=simulated)

echo "4 of 4  comparison"
"$python" compare.py results "$work/results"

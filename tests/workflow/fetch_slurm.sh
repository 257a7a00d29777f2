#!/bin/sh
# Fetch Slurm and MUNGE for the tests of a fleet: fetch_slurm.sh FOLDER
# Debian's packages and what of their needs this machine lacks, unpacked into the folder. Nothing is
# installed, no daemon is started, and nobody has to be root. FOLDER/bin holds commands that start them.
set -eu
mkdir -p "$1"
cd "$1"
rm -rf lists cache debs root bin
mkdir -p lists/partial cache debs bin
set -- -o "Dir::State::Lists=$PWD/lists" -o "Dir::Cache=$PWD/cache"

timeout 60 apt-get -qq "$@" update
needed=$(apt-get "$@" --simulate install --no-install-recommends slurm-wlm munge | sed -n 's/^Inst \([^ ]*\).*/\1/p')
(cd debs && timeout 90 apt-get -qq "$@" download ${needed:-slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge})
for deb in debs/*.deb; do dpkg -x "$deb" root; done

libraries=$(cd root && find usr/lib -name '*.so*' -printf '%h\n' | sort -ru)
for program in root/usr/bin/* root/usr/sbin/*; do
  name=$(basename "$program" -wlm) # Debian's slurmd-wlm is slurmd
  cat >"bin/$name" <<END_OF_SCRIPT
#!/bin/sh
here=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")/root
export LD_LIBRARY_PATH="$(echo "$libraries" | sed 's,^,$here/,' | paste -sd: -)"
exec "\$here/${program#root/}" "\$@"
END_OF_SCRIPT
  chmod +x "bin/$name"
done
rm -rf lists cache debs

#!/bin/sh
# Fetch a Chromium for the test of the report: fetch_chromium.sh FOLDER
# Debian's package and what of its needs this machine lacks, unpacked into the folder. Nothing is
# installed, and nobody has to be root. FOLDER/chromium starts it.
set -eu
mkdir -p "$1"
cd "$1"
rm -rf lists cache debs root chromium
mkdir -p lists/partial cache debs
set -- -o "Dir::State::Lists=$PWD/lists" -o "Dir::Cache=$PWD/cache"
package=chromium-headless-shell

timeout 60 apt-get -qq "$@" update
needed=$(apt-get "$@" --simulate install --no-install-recommends $package | sed -n 's/^Inst \([^ ]*\).*/\1/p')
(cd debs && timeout 90 apt-get -qq "$@" download ${needed:-$package})
for deb in debs/*.deb; do dpkg -x "$deb" root; done

(cd root && find usr/lib -name '*.so*' -printf '%h\n') | grep -v /chromium | sort -u >libraries
cat >chromium <<END
#!/bin/sh
here=\$(dirname "\$(readlink -f "\$0")")/root
export LD_LIBRARY_PATH="$(sed 's,^,$here/,' libraries | paste -sd: -)"
exec "\$here/usr/lib/chromium/$package" "\$@"
END
chmod +x chromium
rm -rf lists cache debs libraries

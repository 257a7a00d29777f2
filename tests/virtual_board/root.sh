# Make the board's root of Debian's packages: root.sh DEBS TREE IMAGE [SIZE MORE], below fakeroot; the
# folder MORE is copied into it.
# They are unpacked and not configured; what is missed of that and needed here is made at the end.
debs=$1 tree=$2 image=$3 size=${4:-1G} more=${5:-}
rm -rf "$tree"
for name in bin sbin lib; do
  mkdir -p "$tree/usr/$name"
  ln -s "usr/$name" "$tree/$name"
done
for deb in "$debs"/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" | tar -x -p --keep-directory-symlink -C "$tree"
done
rm -rf "$tree/usr/share/doc" "$tree/usr/share/man" "$tree/usr/share/locale"

cd "$tree"
mkdir -p board data proc sys dev run tmp etc/pam.d etc/sudoers.d home/me var/lib/nvpmodel usr/local/sbin
ln -sf busybox usr/bin/sh
ln -sf busybox usr/bin/which # of Debian's essential packages; Snakemake's plugin for Slurm asks it
for library in blas lapack; do # alternatives
  ln -sf $library/lib$library.so.3 usr/lib/aarch64-linux-gnu/
done
printf '%s\n' root:x:0:0:root:/root:/bin/sh me:x:1000:1000:me:/home/me:/bin/sh \
  sshd:x:100:65534::/run/sshd:/usr/sbin/nologin >etc/passwd
printf '%s\n' root:x:0: me:x:1000: nogroup:x:65534: >etc/group
chown 1000:1000 home/me
# nobody has a password: what sudo does not allow without one, it refuses
printf '%s\n' 'auth required pam_deny.so' 'account required pam_permit.so' 'session required pam_permit.so' >etc/pam.d/sudo
# the packages would compile their modules when they are configured; else each process does it anew
if python3 -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then
  python3 -m compileall -q --invalidation-mode unchecked-hash -p / usr/lib/python3 usr/lib/python3.11 || true
fi
echo '127.0.0.1 localhost vboard' >etc/hosts
echo pmode:0000 >var/lib/nvpmodel/status
cp usr/bin/busybox "$(dirname "$image")/busybox"
[ -z "$more" ] || cp -a "$more/." .
PATH=$PATH:/usr/sbin:/sbin
mke2fs -q -t ext4 -E root_owner=0:0 -d . "$image" "$size"

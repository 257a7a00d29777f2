#!/bin/busybox sh
# First process of the virtual board: loads the drivers of disks and goes on from the root.
busybox() { /bin/busybox "$@"; }
busybox mount -t devtmpfs dev /dev
while read -r module; do busybox insmod "$module"; done </order
while [ ! -e /dev/vda ] || [ ! -e /dev/vdb ]; do busybox usleep 20000; done
busybox mount -t ext4 /dev/vda /new
busybox mount -t ext4 /dev/vdb /new/board
busybox mount -t devtmpfs dev /new/dev
exec /bin/busybox switch_root /new /bin/busybox sh /board/start.sh

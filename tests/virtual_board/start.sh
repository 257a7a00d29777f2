# First process of the root: files of the kernel, the made-up devices, then the checks.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH HOME=/root LC_ALL=C.UTF-8 PYTHONPATH=/board/src
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t tmpfs run /run
busybox mount -t tmpfs tmp /tmp
busybox chmod 1777 /tmp
busybox mkdir -p /dev/pts
busybox mount -t devpts pts /dev/pts
busybox mount -t debugfs debug /sys/kernel/debug
busybox hostname vboard
busybox ip link set lo up
busybox cp -a /board/files/. /
# shellcheck disable=SC2046
busybox insmod /board/vboard.ko $(busybox cat /board/vboard.parameters)
busybox insmod /board/ina3221.ko
busybox dmesg -n 1 # no line of the kernel inside one of ours
# shellcheck disable=SC2086
python3 "/board/${CHECK:-check}.py" ${WORD:-} # of the kernel's command line
busybox sync
busybox poweroff -f

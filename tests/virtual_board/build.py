"""Building of a virtual board out of Debian's packages, once, in .cache/virtual-board.

Nothing is installed and nobody has to be root: packages are fetched by an apt of our own and
unpacked, not configured (an emulated postinst takes minutes), and fakeroot keeps their owners.
Debian's arm64 kernels lack the ina3221 driver, so it is compiled from Debian's kernel source.
"""

import hashlib
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from epochwatt.errors import EpochwattError

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache/virtual-board"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
MIRROR = "http://deb.debian.org/debian"
SUITE = "bookworm"  # of the board's own programs
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

NEEDED = {  # command -> Debian's package
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "fakeroot": "fakeroot",
    "qemu-system-aarch64": "qemu-system-arm",
    "dtc": "device-tree-compiler",
    "aarch64-linux-gnu-gcc-12": "gcc-12-aarch64-linux-gnu",
    "make": "make",
    "cpio": "cpio",
    "mke2fs": "e2fsprogs",
}
PROGRAMS = ("python3", "python3-numpy", "sudo", "busybox-static")
# in the first RAM disk, with what they need
DRIVERS = (
    *("virtio_pci", "virtio_blk", "crc32c_generic", "ext4", "governor_simpleondemand"),
    *("sdhci_pci", "mmc_block", "nvme", "xhci_pci", "usb_storage", "sd_mod", "virtio_net"),
)
ROOT_SCRIPT = HERE / "root.sh"
MODULES_MADE_BY = ("linux-headers-*", "linux-kbuild-*")  # packages


class Kernel(NamedTuple):
    """A kernel of Debian."""

    version: str
    suite: str

    @property
    def folder(self) -> Path:
        """Return where its files are built."""
        return CACHE / self.version


KERNELS = {
    kernel.version: kernel for kernel in (Kernel("6.1", "bookworm"), Kernel("5.10", "bullseye"))
}


def check_needs() -> None:
    """Raise EpochwattError where this machine lacks what a virtual board is built and run with."""
    missing = [
        package
        for command, package in NEEDED.items()
        if not shutil.which(command) and not Path("/usr/sbin", command).exists()
    ]
    if not Path(KEYRING).exists():
        missing.append("debian-archive-keyring")
    if missing:
        raise EpochwattError(
            "a virtual board cannot be built here: commands of Debian are missing",
            found="no " + ", ".join(missing),
            do="on Debian 12 or newer: apt install --no-install-recommends " + " ".join(missing),
        )


def build(kernel: Kernel) -> None:
    """Make what a board boots from: root, kernel, modules, RAM disk; each anew where it changed."""
    check_needs()
    folder = kernel.folder
    folder.mkdir(parents=True, exist_ok=True)
    make_once(CACHE / "root.built", [SUITE, *PROGRAMS, ROOT_SCRIPT], _build_root)
    fetched = [*kernel]
    make_once(folder / "fetched", fetched, lambda: _fetch_kernel(kernel))
    made_of = [*fetched, HERE / "vboard.c"]
    make_once(folder / "modules.built", made_of, lambda: _build_modules(kernel))
    made_of = [*fetched, *DRIVERS, HERE / "initrd.sh"]
    make_once(folder / "initrd.built", made_of, lambda: _build_initrd(kernel))


def make_once(stamp: Path, made_of: Sequence[str | Path], make: Callable[[], None]) -> None:
    """Make a part of a board, unless its stamp says that it was made of the same.

    Parameters
    ----------
    stamp : file that is written last, with a digest
    made_of : words, and files whose content counts
    """
    parts = [one.read_bytes() if isinstance(one, Path) else one.encode() for one in made_of]
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    start_s = time.monotonic()
    print(f"{stamp.relative_to(CACHE)}: ", end="", flush=True)
    stamp.unlink(missing_ok=True)
    make()
    stamp.write_text(digest)
    print(f"{time.monotonic() - start_s:.0f} s", flush=True)


def run(*command: str | Path, where: Path | None = None, env: Path | None = None) -> str:
    """Run a command and return its output; EpochwattError with its last words where it fails."""
    environment = None if env is None else {"APT_CONFIG": str(env), "PATH": PATH}
    done = subprocess.run(
        list(map(str, command)), cwd=where, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        words = (done.stdout + done.stderr).strip().splitlines()[-8:]
        raise EpochwattError(
            f"`{command[0]}` failed while a virtual board was built", found="\n".join(words)
        )
    return done.stdout


def _apt(folder: Path, suite: str) -> Path:
    """Set up an apt that knows arm64 packages, and no package as installed; return its settings."""
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "state/status").touch()
    (folder / "sources.list").write_text(f"deb [signed-by={KEYRING}] {MIRROR} {suite} main\n")
    config = folder / "apt.conf"
    config.write_text(
        f'Dir::State "{folder}/state"; Dir::State::status "{folder}/state/status";\n'
        f'Dir::Cache "{folder}/cache"; Dir::Etc::sourcelist "{folder}/sources.list";\n'
        'Dir::Etc::sourceparts "-"; APT::Architecture "arm64"; APT::Install-Recommends "false";\n'
        'APT::Architectures { "arm64"; "amd64"; }; APT::Sandbox::User ""; Debug::NoLocking "1";\n'
    )
    run("apt-get", "update", "-q", env=config)
    return config


def _build_root() -> None:
    """Make the file system of the board's programs (root.img), once for all kernels."""
    image = CACHE / "root.img"
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        debs = fetch_programs(Path(work), PROGRAMS)
        run("fakeroot", "sh", "-e", ROOT_SCRIPT, debs, f"{work}/tree", image.with_suffix(".new"))
    image.with_suffix(".new").rename(image)


def fetch_programs(folder: Path, names: Sequence[str]) -> Path:
    """Fetch Debian's packages with all that they need; return the folder that holds them."""
    config = _apt(folder / "apt", SUITE)
    run("apt-get", "install", "-y", "-q", "--download-only", *names, env=config)
    return folder / "apt/cache/archives"


def _fetch_kernel(kernel: Kernel) -> None:
    """Fetch a kernel, the headers to compile modules for it, and the source of its ina3221."""
    folder = kernel.folder
    debs, source = folder / "debs", f"linux-source-{kernel.version}"
    shutil.rmtree(debs, ignore_errors=True)
    debs.mkdir()
    with tempfile.TemporaryDirectory(dir=folder) as work:
        config = _apt(Path(work), kernel.suite)
        depends = run("apt-cache", "depends", "linux-image-arm64", env=config)
        release = re.search(r"linux-image-(\S+-arm64)", depends.partition("Depends:")[2]).group(1)
        names = [f"linux-image-{release}", f"linux-headers-{release}", source]
        names += [f"linux-headers-{release.removesuffix('-arm64')}-common"]
        names += [f"linux-kbuild-{kernel.version}:amd64"]
        run("apt-get", "download", "-q", *names, where=debs, env=config)
        whole = next(debs.glob(f"{source}_*"))
        run("dpkg-deb", "-x", whole, work)
        driver = f"{source}/drivers/hwmon/ina3221.c"
        run(
            *("tar", "--extract", "--occurrence=1", "--strip-components=3"),
            *(f"--directory={folder}", f"--file={work}/usr/src/{source}.tar.xz", driver),
        )
        whole.unlink()
        run("dpkg-deb", "-x", next(debs.glob("linux-image-*")), f"{work}/image")
        shutil.copy(f"{work}/image/boot/vmlinuz-{release}", folder / "vmlinuz")


def _build_modules(kernel: Kernel) -> None:
    """Compile the kernel's own ina3221 driver and the made-up devices."""
    modules = kernel.folder / "modules"
    shutil.rmtree(modules, ignore_errors=True)
    modules.mkdir()
    shutil.copy(kernel.folder / "ina3221.c", modules)
    shutil.copy(HERE / "vboard.c", modules)
    (modules / "Makefile").write_text("obj-m := ina3221.o vboard.o\n")
    with tempfile.TemporaryDirectory(dir=kernel.folder) as tree:
        for name in MODULES_MADE_BY:
            for deb in (kernel.folder / "debs").glob(name):
                run("dpkg-deb", "-x", deb, tree)
        headers = next(Path(tree, "usr/src").glob("linux-headers-*-arm64"))
        makefile = (headers / "Makefile").read_text()
        (headers / "Makefile").write_text(makefile.replace("/usr/src/", f"{tree}/usr/src/"))
        run(
            *("make", "-C", headers, f"M={modules}", "ARCH=arm64", "modules"),
            *("CROSS_COMPILE=aarch64-linux-gnu-", "CC=aarch64-linux-gnu-gcc-12"),
        )


def _build_initrd(kernel: Kernel) -> None:
    """Pack the first RAM disk: a shell, the drivers of disks, and a script that mounts the root."""
    with tempfile.TemporaryDirectory(dir=kernel.folder) as work:
        tree, content = Path(work, "tree"), Path(work, "initrd")
        run("dpkg-deb", "-x", next((kernel.folder / "debs").glob("linux-image-*")), tree)
        for name in ("bin", "dev", "new", "modules"):
            (content / name).mkdir(parents=True)
        shutil.copy(CACHE / "busybox", content / "bin/busybox")
        shutil.copy(HERE / "initrd.sh", content / "init")
        (content / "init").chmod(0o755)
        paths = {path.stem.replace("-", "_"): path for path in tree.glob("lib/modules/**/*.ko")}
        needed = [name for driver in DRIVERS for name in _with_needs(driver, paths)]
        order = list(dict.fromkeys(needed))
        for name in order:
            shutil.copy(paths[name], content / f"modules/{name}.ko")
        (content / "order").write_text("".join(f"/modules/{name}.ko\n" for name in order))
        pack = "find . | cpio -o -H newc --quiet -R 0:0"
        with open(kernel.folder / "initrd.img", "wb") as image:
            subprocess.run(["sh", "-c", pack], cwd=content, stdout=image, check=True)


def _with_needs(module: str, paths: dict[str, Path]) -> Iterator[str]:
    """Give a module after those that it depends on; one that is built in is left out."""
    if module in paths:
        depends = re.search(rb"\0depends=([^\0]*)\0", paths[module].read_bytes())
        for other in (depends.group(1).decode() if depends else "").split(","):
            yield from _with_needs(other.replace("-", "_"), paths)
        yield module


def make_image(content: Path | None, image: Path, mib: int) -> None:
    """Write an ext4 file system, with the content of a folder, all of it root's."""
    image.unlink(missing_ok=True)
    words: Sequence[str | Path] = ["-d", content] if content is not None else []
    mke2fs = shutil.which("mke2fs") or "/usr/sbin/mke2fs"
    run(
        *("fakeroot", "sh", "-c", 'if [ -n "$1" ]; then chown -R 0:0 "$1"; fi; shift; exec "$@"'),
        *("sh", content or "", mke2fs, "-q", "-t", "ext4", "-E", "root_owner=0:0", *words),
        *(image, f"{mib}M"),
    )

"""Install the root helper on a board, or take it away: `make setup-jetson`, `remove-jetson`.

This is all that ever runs as root besides the helper itself. It writes three things: the helper, a
sudoers file that lets one user call it by its verbs, and that user's link to the profile, so that
`snakemake --profile jetson` works by name. More: docs/explanation/root-helper.md.
"""

import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from epochwatt.board.device.board_files import board_kind
from epochwatt.board.device.helper_file import helper_file
from epochwatt.board.device.root_helper import FOLDER, INSTALLED, STATE
from epochwatt.errors import BoardError, EpochwattError

SUDOERS = "etc/sudoers.d/epochwatt"
PROFILE = ".config/snakemake/jetson"  # below a home; where Snakemake looks for a profile by name
CHECKOUT = Path(__file__).resolve().parents[3]

_CALLS = (
    "status",
    "read-clocks",
    "named-mode [0-9]*",
    "custom-mode [0-9]* [0-9]* [0-9]* [0-9]*",
    "pin-clocks",
    "fan-max",
    "restore",
    "drop-caches",
)


def setup_jetson(root: str = "/") -> list[str]:
    """Install helper, sudoers file and link to the profile; return what was done.

    `root`: `/`, or the folder of a fake board, where nothing needs root

    Raises BoardError: no Jetson, no ordinary user who called sudo, or a file that cannot be as it
    must.
    """
    user = _calling_user(root)
    if not board_kind(root):
        raise BoardError(
            "this is no Jetson board, and other machines need no helper: nothing was installed",
            where=f"{root.rstrip('/')}/proc/device-tree",
        )
    helper, rules, link = _paths(root, user)
    _install(rules, sudoers(user.pw_name).encode(), 0o440)
    _install(helper, helper_file(), 0o755)
    target = CHECKOUT / "profiles/jetson"
    with _acting_as(user):
        link.parent.mkdir(parents=True, exist_ok=True)
        if link.is_symlink():
            link.unlink()
        elif link.exists():
            raise BoardError("is no link", where=str(link), do="move it away and start again")
        link.symlink_to(target)
    return [
        f"{helper}  the root helper",
        f"{rules}  lets {user.pw_name} call it, and nothing else",
        f"{link} -> {target}",
    ]


def remove_jetson(root: str = "/") -> list[str]:
    """Put the board's settings back, then take away what `setup_jetson` wrote; return what was.

    Raises BoardError where the settings cannot be put back; then everything is left as it is.
    """
    user = _calling_user(root)
    helper, rules, link = _paths(root, user)
    folder = Path(root, FOLDER)
    if (folder / STATE).exists():
        command = [sys.executable, "-I", str(helper), "restore"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BoardError(
                "the board still has settings of a run, and they cannot be put back",
                found=(done.stdout or done.stderr).strip(),
                do=f"set the mode by hand (sudo nvpmodel -m ID), remove {folder} and start again",
            )
    removed = [path for path in (rules, helper) if path.exists()]
    for path in removed:
        path.unlink()
    if folder.is_dir():
        shutil.rmtree(folder)
        removed.append(folder)
    with _acting_as(user):
        if link.is_symlink() and Path(os.readlink(link)) == CHECKOUT / "profiles/jetson":
            link.unlink()
            removed.append(link)
    return [str(path) for path in removed]


def sudoers(user: str) -> str:
    """Return the sudoers file that lets a user call the helper; raises BoardError for odd names.

    sudo compares the words of a call with these patterns; `*` matches anything, so the helper
    checks them once more.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", user):
        raise BoardError(f"the user name {user!r} cannot stand in a sudoers file", do="use another")
    calls = ", \\\n    ".join(f"/{INSTALLED} {call}" for call in _CALLS)
    return (
        "# Written by epochwatt's `make setup-jetson`; `make remove-jetson` takes it away.\n"
        f"Cmnd_Alias EPOCHWATT = \\\n    {calls}\n"
        "Defaults!EPOCHWATT env_reset\n"
        f"{user} ALL = (root) NOPASSWD: EPOCHWATT\n"
    )


def _paths(root: str, user: pwd.struct_passwd) -> tuple[Path, Path, Path]:
    """Return where helper, sudoers file and link to the profile are."""
    home = Path(root, user.pw_dir.lstrip("/"))
    return Path(root, INSTALLED), Path(root, SUDOERS), home / PROFILE


def _calling_user(root: str) -> pwd.struct_passwd:
    """Return the user who is to call the helper: on a real board the one who called sudo.

    Raises BoardError: this is not root, or no ordinary user called sudo.
    """
    if root != "/":
        return pwd.getpwuid(os.geteuid())
    name = os.environ.get("SUDO_USER", "root")
    if os.geteuid() != 0 or name == "root":
        raise BoardError(
            "this needs root, and an ordinary user who is to measure",
            do="call `make setup-jetson` or `make remove-jetson` as that user, and let it ask for "
            "the password",
        )
    return pwd.getpwnam(name)


@contextmanager
def _acting_as(user: pwd.struct_passwd) -> Iterator[None]:
    """Take on a user's rights for the block: a link in a home must not be made with root's."""
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        os.setegid(user.pw_gid)
        os.seteuid(user.pw_uid)
    try:
        yield
    finally:
        os.seteuid(uid)
        os.setegid(gid)


def _install(path: Path, content: bytes, mode: int) -> None:
    """Write a file of the effective user, whole or not; a sudoers file is checked before that."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")  # sudo reads no name with a dot in it
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        os.fchown(file.fileno(), os.geteuid(), os.getegid())
        os.fchmod(file.fileno(), mode)
    try:
        if path.name == Path(SUDOERS).name:
            _check_sudoers(new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _check_sudoers(path: Path) -> None:
    """Check a sudoers file with visudo: a wrong one can lock everybody out; raises BoardError."""
    visudo = shutil.which("visudo", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if visudo is None:
        raise BoardError("visudo is missing: nothing was installed", do="apt install sudo")
    done = subprocess.run([visudo, "-cf", path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BoardError(f"visudo refuses the sudoers file: {(done.stdout + done.stderr).strip()}")


def main(words: list[str]) -> int:
    """Run `setup` or `remove`, print what was done; return the exit status."""
    if words not in (["setup"], ["remove"]):
        print("usage: board_setup.py setup|remove", file=sys.stderr)
        return 2
    is_setup = words == ["setup"]
    try:
        for line in setup_jetson() if is_setup else remove_jetson():
            print(("installed " if is_setup else "removed ") + line)
    except EpochwattError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

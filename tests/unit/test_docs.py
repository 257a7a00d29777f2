"""Pages of the documentation: links, named files, console examples."""

import importlib.util
import re
import shlex
from contextlib import suppress
from pathlib import Path

import click
import pytest
from snakemake.cli import get_argument_parser

from epochwatt import cli

ROOT = Path(__file__).parents[2]
DOCS = list(ROOT.glob("docs/**/*.md"))
PAGES = [*ROOT.glob("*.md"), *DOCS, *ROOT.glob("config/**/*.md"), *ROOT.glob("benchmarks/**/*.md")]
EXAMPLES = {"config/devices/demo.yaml", "config/devices/lab.nx.yaml"}  # files a reader makes
FOREIGN = {  # commands of the system or of other tools
    *("cat", "cd", "curl", "export", "git", "lsblk", "mv", "pip", "pre-commit", "rsync"),
    *("flower-supernode", "snakedeploy", "sh", "snakemake", "source", "sshfs", "sudo", "tar", "uv"),
}


def relative(path):
    return str(path.relative_to(ROOT))


def by_page(pages):
    return pytest.mark.parametrize("page", pages, ids=relative)


def slug(heading):
    """Return the anchor that a heading gets, here and on the usual hosts of repositories."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")


def anchors(page):
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text("utf-8"), flags=re.M | re.S)
    if include := re.search(r"\{include\} (\S+)", page.read_text("utf-8")):
        text += (page.parent / include[1]).read_text("utf-8")
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", text, re.M)}


@by_page(PAGES)
def test_links_lead_to_files_and_headings(page):
    links = re.findall(r"\]\(([^)\s]+)[^)]*\)", page.read_text("utf-8"))
    inside = [link for link in links if "://" not in link and not link.startswith("mailto:")]
    broken = []
    for link in inside:
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@by_page([page for page in PAGES if page.name != "CHANGELOG.md"])  # which names former files
def test_named_files_exist(page):
    named = re.findall(
        r"`((?:src|config|workflow|tests|benchmarks|docs)/[\w./-]+)`", page.read_text()
    )
    named += [f"src/epochwatt/{path}" for path in re.findall(r"`(twin/[\w./]+)`", page.read_text())]
    own = {path for path in named if "/own_" in path}  # the tutorial's
    assert [path for path in {*named} - own - EXAMPLES if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("folder", ["src", "config", "workflow", "profiles", "benchmarks"])
def test_pages_named_in_code_exist(folder):
    missing = {}
    for path in (ROOT / folder).rglob("*.*"):
        if path.suffix in (".py", ".yaml", ".smk", ".rst", ".csv", ".md", ".sh"):
            named = re.findall(r"\bdocs/[\w./-]+\.md\b", path.read_text("utf-8"))
            named += [
                f"{page}*" for page in re.findall(r"\bdocs/decisions/\d{4}", path.read_text())
            ]
            lost = [page for page in named if not list(ROOT.glob(page))]
            missing |= {relative(path): lost} if lost else {}
    assert missing == {}


def commands(page):
    """Return the command lines of the console blocks of a page, without comments."""
    blocks = re.findall(r"^ *```console\n(.*?)^ *```", page.read_text("utf-8"), re.M | re.S)
    lines = "\n".join(blocks).replace("\\\n", " ").split("\n")
    plain = [re.sub(r"(^|\s)#.*", "", line).strip() for line in lines]
    return [part for line in plain if line for part in re.split(r" && (?=[^']*$)", line)]


def program_and_arguments(command):
    words = shlex.split(command.rstrip("&; "))
    while "=" in words[0]:
        del words[0]
    return words[0], words[1:]


@by_page([page for page in PAGES if commands(page)])
def test_console_examples_are_valid(page):
    for command in commands(page):
        program, arguments = program_and_arguments(command)
        name = Path(program).name
        if name == "epochwatt":
            assert program.endswith("/bin/epochwatt"), "nothing else is on the reader's path"
            check_epochwatt(arguments)
        elif name == "make":
            check_make(arguments)
        elif program == ".venv/bin/snakemake":
            check_snakemake(arguments)
        elif name.startswith("python"):
            check_python(arguments)
        else:
            assert name in FOREIGN, command


def check_epochwatt(arguments):
    """Parse as the command line does; nothing is run."""
    with suppress(click.exceptions.Exit):  # --help
        context = cli.epochwatt.make_context("epochwatt", list(arguments))
        command = cli.epochwatt.get_command(context, arguments[0])
        assert command is not None, arguments[0]
        command.make_context(arguments[0], arguments[1:], parent=context)


def check_make(arguments):
    makefile = (ROOT / "Makefile").read_text("utf-8")
    if arguments[:1] == ["-C"]:
        arguments = arguments[2:]
    for target in (word for word in arguments if "=" not in word):
        pattern = re.escape(target).replace("workflow", "(workflow|%)").replace("host", "(host|%)")
        assert re.search(rf"^({pattern}|\S*%-ready):", makefile, re.M), target


def check_snakemake(arguments):
    for profile in get_argument_parser().parse_args(arguments).profile or []:
        assert (ROOT / "profiles" / Path(profile).name).is_dir()


def check_python(arguments):
    if arguments[:1] == ["-m"]:
        assert importlib.util.find_spec(arguments[1]) is not None
    else:
        assert (ROOT / arguments[0]).is_file()

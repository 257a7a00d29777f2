"""Made-up logs in the form in which the 2023 scripts and jtop 3.1 write them."""

import json
from pathlib import Path

HEADERS = {
    "epoch_stats": "epoch,time,loss,accuracy,epochtime_ms,log_time",
    "fetch": "epoch,batch_idx,fetchtime,fetchtime_ms,log_time",
    "compute": "epoch,batch_idx,computetime,computetime_ms,log_time",
    "vmtouch_stats": "files,directories,resident_pages,resident_pages_size,resident_pages_%,"
    "elapsed,redundant,log_time",
    "io_stats": "r/s,w/s,rkB/s,wkB/s,rrqm/s,wrqm/s,%rrqm,%wrqm,r_await,w_await,aqu-sz,rareq-sz,"
    "wareq-sz,svctm,%util,log_time",
    "mem_stats": "total,used,free,shared,buff/cache,available,log_time",
    "swap_stats": "total,used,free,log_time",
    "tegrastats": "CPU1,CPU2,CPU3,EMC,GPU,RAM,log_time,power avg,power cur,time",
    "ram_stats": "lfb,log_time,shared,tot,unit,use",
}
BEGUN_ANEW = ("tegrastats", "ram_stats")  # pandas overwrites them; the others are appended to
LOSS = "\"tensor(2.3041, device='cuda:0', grad_fn=<NllLossBackward>)\""
LFB = "\"{'nblock': 5, 'size': 4, 'unit': 'M'}\""
STEP_S = 1.25  # of the monitor


def power_w(t_s):
    """A straight line, so that its trapezoid is exact."""
    return 10.0 + 0.125 * t_s


class ScriptRun:
    """One run of the scripts into a folder; a second one there goes behind the first."""

    def __init__(self, folder, workers=4, prefetch=2):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.prefix = f"mn_nw{workers}_pf{prefetch}"
        self.lines = {kind: [header] for kind, header in HEADERS.items()}
        self.now_s = 2.0

    def path(self, kind):
        """Return the file of a kind."""
        return self.folder / f"{self.prefix}_{kind}.csv"

    def log(self, kind, *cells):
        """Add a line that ends with the log time, as most do."""
        self.lines[kind].append(",".join(map(str, (*cells, self.now_s))))

    def vmtouch(self, share_pct):
        """Look into the page cache."""
        self.now_s += 1.0
        self.log(
            "vmtouch_stats", 9, 1, f"{share_pct}/100", "1M/2M", f"{share_pct}%", 0.5, "seconds"
        )

    def epoch(self, number, n=5, fetch_s=1.0, compute_s=2.0, rest_s=0.125, finished=True):
        """Train an epoch."""
        begin_s = self.now_s
        for batch in range(n):
            self.now_s += fetch_s + compute_s
            self.log("fetch", number, batch, "null", 1000 * fetch_s)
            self.log("compute", number, batch, "null", 1000 * compute_s)
            self.now_s += rest_s
        if finished:
            e2e_ms = 1000 * (self.now_s - begin_s)
            self.log("epoch_stats", number, "null", LOSS, "null", e2e_ms)

    def monitor(self):
        """Let the monitor tell of all that time."""
        for n in range(1 + int(self.now_s / STEP_S) + 1):
            t_s = n * STEP_S
            io = [20.0, 1.0, 1280.0, 4.0, 0.0, 0.0, 0.0, 0.0, 1.5, 2.0, 0.1, 64.0, 4.0, 1.0, 2.0]
            self.lines["io_stats"].append(",".join(map(str, [*io, t_s])))
            self.lines["mem_stats"].append(f"31G,2.1G,20G,100M,8G,28G,{t_s}")
            self.lines["swap_stats"].append(f"15G,0B,15G,{t_s}")
            power = f"9000,{1000 * power_w(t_s)}"
            self.lines["tegrastats"].append(
                f"40,20,OFF,7,75,4096,{t_s},{power},2022-05-11 12:00:00"
            )
            self.lines["ram_stats"].append(f"{LFB},{t_s},9,32000000,k,2097152")

    def write(self, *without):
        """Write the files, but for some kinds."""
        for kind, lines in self.lines.items():
            if kind not in without:
                mode = "w" if kind in BEGUN_ANEW else "a"
                with self.path(kind).open(mode, encoding="utf-8") as handle:
                    handle.write("\n".join(lines) + "\n")
        return self

    def edit(self, kind, old, new, count=1):
        """Replace a piece of text of a file that was written."""
        text = self.path(kind).read_text("utf-8")
        assert old in text, f"{old!r} is not in {kind}"
        self.path(kind).write_text(text.replace(old, new, count), "utf-8")


def write_run(folder, *without, epochs=3, unfinished=0, workers=4, prefetch=2, **epoch):
    """Write a whole run; `unfinished` mini-batches of one epoch more before it was killed."""
    run = ScriptRun(folder, workers, prefetch)
    run.vmtouch(100)  # before the page cache is dropped
    for number in range(epochs):
        run.vmtouch((10, 50, 90)[min(number, 2)])
        run.epoch(number, **epoch)
    if unfinished:
        run.epoch(epochs, n=unfinished, finished=False)
    run.vmtouch(90)
    run.monitor()
    return run.write(*without)


def sources(folder):
    """Return every source.json below a folder."""
    return [json.loads(p.read_text("utf-8")) for p in sorted(Path(folder).glob("*/source.json"))]

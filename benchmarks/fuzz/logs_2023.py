"""A small run's logs in the form of the 2023 scripts: two epochs of three mini-batches."""

from pathlib import Path

HEADERS = {
    "epoch_stats": "epoch,time,loss,accuracy,epochtime_ms,log_time",
    "fetch": "epoch,batch_idx,fetchtime,fetchtime_ms,log_time",
    "compute": "epoch,batch_idx,computetime,computetime_ms,log_time",
    "vmtouch_stats": "files,directories,resident_pages,resident_pages_size,resident_pages_%,"
    "elapsed,redundant,log_time",
    "io_stats": "r/s,w/s,rkB/s,wkB/s,rrqm/s,wrqm/s,%rrqm,%wrqm,r_await,w_await,aqu-sz,rareq-sz,"
    "wareq-sz,svctm,%util,log_time",
    "tegrastats": "CPU1,CPU2,CPU3,EMC,GPU,RAM,log_time,power avg,power cur,time",
    "ram_stats": "lfb,log_time,shared,tot,unit,use",
}
LOSS = "\"tensor(2.3041, device='cuda:0', grad_fn=<NllLossBackward>)\""
LFB = "\"{'nblock': 5, 'size': 4, 'unit': 'M'}\""


def write(folder: Path) -> None:
    """Write the files of one run with four workers."""
    lines = {kind: [header] for kind, header in HEADERS.items()}
    now_s = 2.0
    for epoch in range(2):
        lines["vmtouch_stats"].append(f"9,1,5/100,1M/2M,5%,0.5,seconds,{now_s}")
        begin_s = now_s
        for batch in range(3):
            now_s += 3.0
            lines["fetch"].append(f"{epoch},{batch},null,1000.0,{now_s}")
            lines["compute"].append(f"{epoch},{batch},null,2000.0,{now_s}")
        took_ms = 1000 * (now_s - begin_s)
        lines["epoch_stats"].append(f"{epoch},null,{LOSS},null,{took_ms},{now_s}")
    for n in range(20):
        lines["io_stats"].append(f"20.0,1.0,1280.0,4.0,{'0.0,' * 11}{n * 1.25}")
        lines["tegrastats"].append(f"40,20,OFF,7,75,4096,{n * 1.25},9000,9500,2022-05-11 12:00:00")
        lines["ram_stats"].append(f"{LFB},{n * 1.25},9,32000000,k,2097152")
    for kind, told in lines.items():
        (folder / f"mn_nw4_pf2_{kind}.csv").write_text("\n".join(told) + "\n", "utf-8")

"""The report of a run: a line for each workload, and the results for each target."""
import datetime
import json
import math

import predictions

CLOCKS = ["clocks.sm", "clocks.mem", "clocks.max.sm", "power.limit", "temperature.gpu"]
PEERS = ["eager", "cublas", "triton", "jax", "compile", "max-autotune"]
MEMORY = ("row", "loss", "move")  # memory-bound groups


def row(w):
    return {
        "name": w.name, "group": w.group, "mode": w.mode, "element": w.elem, "sizes": w.dims,
        "minimum_bytes": w.minimum(), "contraction_flop": w.flop(),
    }  # fmt: skip


def ns(r, name):
    return r.get(name, {}).get("ns")


def ratio(r, peer):
    """Returns the peer's time over dmir's; None if one of the two has no time."""
    return ns(r, peer) / ns(r, "dmir") if ns(r, peer) and ns(r, "dmir") else None


def of_copy(r, copy):
    """Returns the minimum bytes over the time, as a fraction of the copy bandwidth."""
    return r["minimum_bytes"] / ns(r, "dmir") * 1e9 / copy if copy and ns(r, "dmir") else None


def micro(t):
    return f"{t / 1e3:.1f}" if t else ""


def head(result, emulated):
    versions = ", ".join(dict.fromkeys(result["versions"].values()))
    print(f"\n{result['card']}; {versions or 'no peers'}")
    if not emulated:
        c, copy = result["clocks_before"], result["copy_bytes_per_s"]
        moves = f"a copy moves {copy / 1e12:.2f} TB/s; " if copy else ""
        print(f"driver {result['driver']}, clocks {c.get('clocks.sm', '?')} of {c.get('clocks.max.sm', '?')}, memory {c.get('clocks.mem', '?')}, "
              f"limit {c.get('power.limit', '?')}; {moves}predicted for {result['target']}")
        print("times in µs; peers' times relative to dmir's\n")
        columns = "".join(f"{p:>14}" if p == "max-autotune" else f"{p:>9}" for p in PEERS)
        print(f"{'workload':<34}{'predicted':>10}{'measured':>10}{'error':>8}{'of copy':>9}{'TFLOP/s':>9}{columns}")
    else:
        print(f"\n{'workload':<34}{'moved MB':>10}{'counted':>10}{'error of dmir':>15}  error of peers", flush=True)


def line(r, copy, emulated):
    """Prints the known results of a workload."""
    d = r.get("dmir", {})
    trouble = d.get("failed") or d.get("wrong") and "WRONG: " + d["wrong"]
    for key, message in (("untimed", "no times: {}"), ("unchecked", "not checked: {}"), ("not_finite", "{} elements of the results are not finite")):
        if not trouble and d.get(key):
            trouble = message.format(d[key])
    if emulated:
        if "dmir" in r:
            counted = f"{d['counted_bytes'] / 1e6:.2f}" if "counted_bytes" in d else ""
            moved = f"{d['moved_bytes'] / 1e6:.2f}" if "moved_bytes" in d else ""
            error = f"{d['error']:.2g}" if "error" in d else ""
            others = ", ".join(f"{p} {stated(r[p])}" for p in PEERS if p in r and not r[p].get("absent"))
            print(f"{r['name']:<34}{moved:>10}{counted:>10}{error:>15}  {others}")
    else:
        part, t = of_copy(r, copy), ns(r, "dmir")
        memory = f"{part:.0%}" if part and r["group"] in MEMORY else ""
        speed = f"{r['contraction_flop'] / t / 1e3:.0f}" if t and r["contraction_flop"] else ""
        error = f"{d['predicted_ns'] / t - 1:+.0%}" if t else ""
        peers = "".join(f"{cell(r, p):>14}" if p == "max-autotune" else f"{cell(r, p):>9}" for p in PEERS)
        print(f"{r['name']:<34}{micro(d.get('predicted_ns')):>10}{micro(t):>10}{error:>8}{memory:>9}{speed:>9}{peers}")
    if trouble:
        print(f"    dmir: {trouble}")
    print("", end="", flush=True)


def stated(p):
    if p.get("failed") or p.get("wrong"):
        return p.get("failed") or "wrong: " + p["wrong"]
    return f"{p['error']:.2g}"


def cell(r, peer):
    p = r.get(peer)
    if p is None or p.get("absent"):
        return ""
    if p.get("wrong"):
        return "wrong"
    if p.get("failed"):
        return "failed"
    x = ratio(r, peer)
    return f"{x:.2f}" if x else micro(p.get("ns"))


def kernels(r):
    """Returns name, predicted and measured time of each kernel. The final sum over a kernel's blocks, which the model counts
    as part of the kernel, is a separate step without a cost; its time is added to the kernel's."""
    out = []
    for s in r["dmir"]["steps"]:
        if out and s["time_ns"] == 0 and s["name"].startswith(out[-1][0]):
            out[-1][2] += s["measured_ns"] or 0
        else:
            out.append([s["name"], s["time_ns"], s["measured_ns"] or 0])
    return out


def targets(rows, copy):
    """Returns each target with its measurements: the number of values that meet it, and the worst."""
    best = lambda *xs: min((x for x in xs if x is not None), default=None)
    out = []

    def add(what, least, values, share=1.0):
        values = [(v, name) for v, name in values if v is not None]
        met = sum(v >= least for v, _ in values)
        worst = min(values, default=(None, None))
        mean = math.exp(sum(math.log(max(v, 1e-9)) for v, _ in values) / len(values)) if values else None
        out.append({"target": what, "least": least, "met": met, "of": len(values), "reached": bool(values) and met >= share * len(values), "mean": mean, "worst": worst[0], "worst_name": worst[1]})

    group = lambda *names: [r for r in rows if r["group"] in names]
    add("memory-bound kernels: fraction of the copy bandwidth", 0.9, [(of_copy(r, copy), r["name"]) for r in group(*MEMORY)])
    add("GEMM against cuBLAS", 0.95, [(best(ratio(r, "cublas"), ratio(r, "eager")), r["name"]) for r in group("gemm")])
    add("GEMM with epilogue against torch.compile", 1, [(best(ratio(r, "compile"), ratio(r, "max-autotune")), r["name"]) for r in group("epilogue")])
    both = [r for r in group("layer") if r["mode"] == "both"]
    add("layers forward-backward against eager", 1.3, [(ratio(r, "eager"), r["name"]) for r in both])
    add("layers forward-backward against torch.compile max-autotune", 1, [(ratio(r, "max-autotune"), r["name"]) for r in both])
    near = []
    for r in rows:
        if ns(r, "dmir"):
            near += [(1 - abs(predicted / measured - 1), f"{r['name']}/{name}") for name, predicted, measured in kernels(r) if measured]
    add("prediction within 15 % for nine kernels in ten", 0.85, near, 0.9)
    return out


def end(result, emulated):
    """Prints the summary."""
    rows = result["workloads"]
    done = [r for r in rows if "dmir" in r]
    bad = [r["name"] for r in done if r["dmir"].get("wrong") or r["dmir"].get("failed")]
    agree = [r for r in done if r["dmir"].get("error") is not None and r["name"] not in bad]
    small = [r for r in done if r["dmir"].get("checked_small")]
    print(f"\n{len(agree)} of {len(done)} workloads agree with float32" + (f", {len(small)} at small sizes with the reference" if small else "")
          + (f"; not: {', '.join(bad)}" if bad else ""))  # fmt: skip
    if not emulated:
        for t in result["targets"]:
            if not t["of"]:
                print(f"  not measured  {t['target']}")
                continue
            print(f"  {'reached' if t['reached'] else 'missed ':<13} {t['target']}: {t['met']} of {t['of']} at {t['least']:g} or more; mean {t['mean']:.2f}, worst {t['worst']:.2f} ({t['worst_name']})")
        predictions.summary(rows)
    if result["left_out"]:
        print(f"skipped for lack of time: {', '.join(f'{w} ({n})' for w, n in result['left_out'])}")
    print(f"{result['seconds']} s")


def read(path):
    """Returns the lines of JSON in a file that are complete; none if there is no such file."""
    out = []
    try:
        text = path.read_text().splitlines()
    except OSError:
        return out
    for line in text:
        try:
            out.append(json.loads(line))
        except ValueError:  # a truncated line
            pass
    return out


def outcomes(log):
    """Returns the number of cases by class and outcome, from the lines of the suite."""
    out = {}
    for r in log:
        if "case" in r:
            of = out.setdefault(r["class"], {})
            of[r["outcome"]] = of.get(r["outcome"], 0) + 1
    return out


def bad(log):
    """Returns the workloads that dmir does not run, or that it computes wrongly."""
    return [r["workload"] for r in log if r.get("dmir") and (r["dmir"].get("wrong") or r["dmir"].get("failed"))]


def rowed(*cells):
    return "| " + " | ".join(str(c).replace("|", "\\|").replace("\n", " ") for c in cells) + " |"


def markdown(args, steps, found, out):
    """Returns the report of scripts/gpu.sh: the steps, what the card computes right, and the times."""
    try:
        whole = json.loads((out / "gpu.json").read_text())
    except (OSError, ValueError):
        whole = {}
    text = [f"# {args.card or whole.get('card', 'The card')}, {datetime.date.today().isoformat()}", ""]
    if whole:
        copy = whole.get("copy_bytes_per_s")
        text += [f"{', '.join(dict.fromkeys(whole.get('versions', {}).values())) or 'No peers'}; driver {whole.get('driver')}; predicted for {args.target}"
                 + (f"; a copy moves {copy / 1e12:.2f} TB/s" if copy else "") + ".", ""]  # fmt: skip
    text += ["## Steps", "", rowed("step", "at most, s", "expected, s", "used, s", "outcome", ""), "|---|--:|--:|--:|---|---|"]
    text += [rowed(s["step"], s["limit"], s["expected"], s["used"], s["outcome"], s["why"]) for s in steps]
    text += [rowed("together", f"{60 * args.minutes:g}", "", round(sum(s["used"] for s in steps), 1), "", "")]
    if found["smoke"]:
        text += ["", "## Smoke", "", rowed("program", "outcome", ""), "|---|---|---|"]
        text += [rowed(n, r["outcome"], r.get("why", "")) for n, r in found["smoke"].items()]
    for name, classes in found["suites"].items():
        kinds = sorted({k for c in classes.values() for k in c}, key=lambda k: (k != "passed", k))
        text += ["", f"## {'Device suite' if name == 'suite.jsonl' else 'Device suite, inputs of another seed'}", "", rowed("class", *kinds), "|---|" + "--:|" * len(kinds)]
        text += [rowed(c, *(classes[c].get(k, "") for k in kinds)) for c in sorted(classes)]
        wrong = [r for r in read(out / name) if r.get("outcome") in ("wrong", "failed", "faulted", "hung")]
        text += ["", *(f"- `{r['case']}` {r['outcome']}: {r.get('why', '')}" for r in wrong[:30])] if wrong else []
    if found["sanitizer"]:
        text += ["", "## compute-sanitizer", "", rowed("case", "tool", "outcome"), "|---|---|---|"]
        text += [rowed(r["case"], r["tool"], r["outcome"]) for r in found["sanitizer"].values()]
    if found["find"]:
        text += ["", "## Found alone", "", *(f"- `{n}`: " + ", ".join(f"{k} {v}" for k, v in r.items() if v) for n, r in found["find"].items())]
    text += times(whole)
    text += gpt2(out)
    return "\n".join(text) + "\n"


def times(whole):
    rows = [r for r in whole.get("workloads", []) if "dmir" in r]
    if not rows:
        return []
    copy, peers = whole.get("copy_bytes_per_s"), [p for p in PEERS if any(p in r and not r[p].get("absent") for r in rows)]
    text = ["", "## Times", "", "In µs; a peer's time over dmir's, above 1 dmir is faster.", "",
            rowed("workload", "predicted", "measured", "error", "of copy", "TFLOP/s", *peers, ""), "|---|" + "--:|" * (5 + len(peers)) + "---|"]  # fmt: skip
    for r in rows:
        d, t, part = r["dmir"], ns(r, "dmir"), of_copy(r, copy)
        text.append(rowed(
            r["name"], micro(d.get("predicted_ns")), micro(t), f"{d['predicted_ns'] / t - 1:+.0%}" if t else "", f"{part:.0%}" if part and r["group"] in MEMORY else "",
            f"{r['contraction_flop'] / t / 1e3:.0f}" if t and r["contraction_flop"] else "", *(cell(r, p) for p in peers),
            d.get("failed") or (f"WRONG: {d['wrong']}" if d.get("wrong") else "") or d.get("untimed", ""),
        ))  # fmt: skip
    text += ["", *(f"- {'reached' if t['reached'] else 'missed'}: {t['target']}: {t['met']} of {t['of']} at {t['least']:g} or more, worst {t['worst']:.2f} ({t['worst_name']})"
                   for t in whole.get("targets", []) if t["of"])]  # fmt: skip
    left = whole.get("left_out", [])
    return text + (["", f"Skipped for lack of time: {len(left)}."] if left else [])


def gpt2(out):
    try:
        got = json.loads((out / "gpt2.json").read_text())
    except (OSError, ValueError):
        return []
    text = ["", "## A training step of GPT-2", "", rowed("", "ms", ""), "|---|--:|---|"]
    for name in ("predicted", "dmir", "eager", "compile"):
        x = got.get(name, {})
        text.append(rowed(name, f"{x['ns'] / 1e6:.2f}" if x.get("ns") else "", x.get("failed", "")))
    kernels = sorted(got.get("kernels", []), key=lambda k: -k["measured_ns"])
    text += ["", rowed("kernel", "launches", "predicted, µs", "measured, µs", "error"), "|---|--:|--:|--:|--:|"] if kernels else []
    for k in kernels[:40]:
        text.append(rowed(k["name"], k["launches"], micro(k["predicted_ns"]), micro(k["measured_ns"]), f"{k['predicted_ns'] / k['measured_ns'] - 1:+.0%}" if k["measured_ns"] else ""))
    return text

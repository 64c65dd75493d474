#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a run's reward, entropy and staleness (largest, dashed: mean) by step: plot_metrics.py METRICS.jsonl OUT.svg (Debian: python3-matplotlib)."""
import json
import sys

import matplotlib
matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "millrace"  # the same metrics give the same file
import matplotlib.pyplot as plt


def main(metrics, out):
    with open(metrics) as lines:
        steps = [json.loads(line) for line in lines]
    x = [step["step"] for step in steps]
    rows = [("mean reward", [step["all"]["reward"] for step in steps]),
            ("entropy (nats)", [step["all"]["entropy"] for step in steps]),
            ("staleness (versions)", [step["staleness"]["max"] for step in steps])]
    figure, axes = plt.subplots(len(rows), 1, sharex=True, figsize=(8, 7))
    for axis, (name, values) in zip(axes, rows):
        axis.plot(x, values, linewidth=1.2)
        axis.set_ylabel(name)
        axis.grid(alpha=0.3)
    axes[-1].plot(x, [step["staleness"]["mean"] for step in steps], linewidth=1.2, linestyle="--")
    axes[-1].set_xlabel("step")
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])

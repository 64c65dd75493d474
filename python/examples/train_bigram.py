#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a table of bigram logits with the default rl loss, a process for each rank: `torchrun --nproc_per_node N
train_bigram.py CONFIG [key=value ...]`, beside `millrace run CONFIG --set trainer.kind=external ...`. docs/python.md."""
import os
import sys

import millrace

try:
    import torch
    import torch.distributed as dist
except ImportError as missing:
    print(f"train_bigram: {missing}", file=sys.stderr)
    sys.exit(77)

MASK_HIGH, MASK_LOW, ADV_TAU, KL_TAU = 0.2, 0.2, 1.0, 1e-3  # of the default loss


def rl_loss(logits, batch):
    """Sums over the tokens that train: of the loss, of advantage * (new logprob - old logprob), and their number."""
    ids, weights = batch["input_ids"][0], batch["rl_weights"]
    trains = batch["loss_mask"][0] & (batch["position_ids"][0] > 0)  # nothing comes before the first token
    if weights is not None:
        trains &= weights[0] != 0
    at = trains.nonzero()[:, 0]
    weight = 1.0 if weights is None else weights[0, at]
    q, advantage = batch["inference_logprobs"][0, at], batch["advantages"][0, at]
    scaled = logits[ids[at - 1]] / batch["temperatures"][0, at, None]
    t = scaled.log_softmax(-1).gather(-1, ids[at, None])[:, 0]
    d = t - q
    delta = (t.exp() - q.exp()).detach()
    hit = torch.where(advantage > 0, delta > MASK_HIGH, delta < -MASK_LOW)
    term = -torch.where(hit, torch.zeros(()), ADV_TAU * advantage * d.exp()) + KL_TAU * d * d
    return (weight * term).sum(), (advantage * d).sum().detach(), len(at)


def train(feeder, vocab):
    logits = torch.zeros(vocab, vocab, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.2)
    if feeder.resume_step:
        saved = torch.load(feeder.resume_folder / "bigram.pt")
        logits.data.copy_(saved["logits"])
        optimizer.load_state_dict(saved["optimizer"])
    for step in feeder:
        optimizer.zero_grad()
        sums = torch.zeros(3)  # loss, gain, tokens
        for micro_batch in step.micro_batches:
            loss, gain, tokens = rl_loss(logits, micro_batch.torch())
            (loss / max(step.totals.rl, 1)).backward()
            sums += torch.tensor([loss.item(), gain.item(), tokens])
        if logits.grad is None:
            logits.grad = torch.zeros_like(logits)  # nothing trained here
        dist.all_reduce(logits.grad)
        dist.all_reduce(sums)
        optimizer.step()
        feeder.trained(step)
        if feeder.rank == 0:
            loss, gain, tokens = sums.tolist()
            print(f"step {step.number}: loss {loss / max(tokens, 1):+.4f} gain {gain / max(tokens, 1):+.4f} "
                  f"({tokens:.0f} tokens)", flush=True)
        if step.checkpoint_due:
            torch.save({"logits": logits.data, "optimizer": optimizer.state_dict()},
                       step.checkpoint_folder / "bigram.pt")
            feeder.durable(step)


def main():
    rank, sets = int(os.environ["RANK"]), sys.argv[2:]
    vocab = int(dict(each.split("=", 1) for each in sets).get("vocab_size", 512))
    dist.init_process_group("gloo")  # RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT: torchrun sets them
    try:
        with millrace.Feeder(sys.argv[1], rank, set=sets) as feeder:
            train(feeder, vocab)
    except millrace.Error as why:
        sys.exit(print(f"train_bigram: {why}", file=sys.stderr) or why.exit_code)


if __name__ == "__main__":
    main()

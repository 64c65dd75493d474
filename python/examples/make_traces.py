#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes up episodes that train_bigram.py can learn from, as NeMo Gym writes them: make_traces.py > traces.jsonl.
16 words, sampled at random; the reward counts the pairs (n, n + 1)."""
import json
import math
import random

VOCAB, TOKENS, GROUPS, GROUP_SIZE = 16, 13, 200, 8


def main():
    chance = random.Random(1)
    for task in range(GROUPS):
        for slot in range(GROUP_SIZE):
            ids = [chance.randrange(VOCAB) for _ in range(TOKENS)]
            reward = sum(after == (before + 1) % VOCAB for before, after in zip(ids, ids[1:]))
            message = {"type": "message", "role": "assistant", "content": [], "id": "m", "status": "completed",
                       "prompt_token_ids": ids[:1], "generation_token_ids": ids[1:],
                       "generation_log_probs": [-math.log(VOCAB)] * (TOKENS - 1)}
            print(json.dumps({"responses_create_params": {"input": "q"}, "reward": float(reward),
                              "response": {"id": "r", "error": None, "output": [message]},
                              "agent_ref": {"name": "simple_agent"}, "_ng_task_index": task,
                              "_ng_rollout_index": slot}))


if __name__ == "__main__":
    main()

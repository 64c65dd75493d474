/* SPDX-License-Identifier: Apache-2.0
 *
 * The door for policies in a shared library: plain C, so that it does not depend on compilers. A library exports one
 * function, millrace_policy(), and is named by its path: trainer.policy = "./libmine.so". docs/policies.md has a worked
 * example. What is added later stands at the ends of the structs: look at `size` before reading it. */
#ifndef MILLRACE_POLICY_ABI_H
#define MILLRACE_POLICY_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MILLRACE_POLICY_ABI 1

/* A micro batch. N tokens with padding, S sequences. Memory of the host, valid for the call. */
typedef struct millrace_batch {
  size_t size; /* of this struct, as the program knows it */
  uint64_t step;
  uint32_t rank;
  uint32_t index;                  /* of the micro batch in the step */
  size_t tokens;                   /* N */
  size_t sequences;                /* S */
  size_t padding;                  /* trailing tokens of N; they belong to the last sequence */
  const int64_t *input_ids;        /* [N] */
  const int64_t *position_ids;     /* [N], from 0 in each sequence */
  const uint8_t *loss_mask;        /* [N], 0 or 1 */
  const float *temperatures;       /* [N] */
  const float *inference_logprobs; /* [N], at sampling */
  const int64_t *sequence_lengths; /* [S]; the last one holds the padding */
  const char *const *env_names;    /* [S], of the environment of each sequence */
} millrace_batch;

/* Adds up `values` over all ranks, in place, in the order of the ranks. All ranks make the same calls with as many values.
 * Returns 0, or not: then return not 0 yourself, the step cannot be finished. Valid in step() only. */
typedef int (*millrace_all_reduce)(void *context, double *values, size_t count);

/* A step of the optimizer. */
typedef struct millrace_update {
  size_t size; /* of this struct */
  uint64_t step;
  uint32_t rank;
  uint32_t ranks;
  int64_t rl_tokens; /* over all ranks: what the losses were divided by */
  int64_t ce_tokens;
  int64_t ref_kl_tokens;
  millrace_all_reduce all_reduce;
  void *context; /* for all_reduce */
} millrace_update;

/* Where a function writes why it failed: a line for people, ended by 0, cut to `capacity`. */
typedef struct millrace_error {
  char *text;
  size_t capacity;
} millrace_error;

/* One policy. All are called from one thread. Those that return int return 0, or not after writing why. `self` is what
 * create() returned. */
typedef struct millrace_policy_functions {
  size_t size;  /* sizeof(millrace_policy_functions) */
  uint32_t abi; /* MILLRACE_POLICY_ABI */

  /* `options`: trainer.policy_options of the config. NULL: it failed. */
  void *(*create)(const char *options, uint32_t rank, uint32_t ranks, millrace_error *error);
  void (*destroy)(void *self);

  /* The log-probability of each token given those before it in its sequence, at its temperature, and the entropy of what
   * it was drawn from. Unit: nats. Both [N]; write every value, 0 at the first token of a sequence. */
  int (*forward)(void *self, const millrace_batch *batch, float *logprobs, float *entropy, millrace_error *error);

  /* `gradient`: d loss / d logprob, [N], of the batch that forward() was given last. Add it to the gradient of the
   * parameters. */
  int (*backward)(void *self, const millrace_batch *batch, const float *gradient, millrace_error *error);

  /* Add up the gradients of all ranks, apply them, begin anew. */
  int (*step)(void *self, const millrace_update *update, millrace_error *error);

  /* Write all that load() needs into `folder`, which exists and is empty. */
  int (*save)(void *self, const char *folder, uint64_t step, millrace_error *error);
  /* Sets the step that `folder` was saved after. */
  int (*load)(void *self, const char *folder, uint64_t *step, millrace_error *error);

  /* As if new: no step is applied. */
  void (*reset)(void *self);
} millrace_policy_functions;

/* What the library exports. `abi`: that of the program. NULL: it does not speak it. */
const millrace_policy_functions *millrace_policy(uint32_t abi);

#ifdef __cplusplus
}
#endif

#endif

// SPDX-License-Identifier: Apache-2.0
// A policy in a library of its own: the probability of a token does not depend on those before it.
// docs/policies.md tells how to build and use it. Options: "VOCAB_SIZE LEARNING_RATE", for example
// "16 50".
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "actors/trainer/policy_abi.h"

namespace {

struct unigram {
  std::vector<double> logits;
  std::vector<double> gradient;
  double learning_rate = 0;
};

unigram &of(void *self) { return *static_cast<unigram *>(self); }

int failed(millrace_error *error, const char *why) {
  std::snprintf(error->text, error->capacity, "%s", why);
  return 1;
}

double log_sum_exp(const unigram &model, double temperature) {
  const double largest = *std::max_element(model.logits.begin(), model.logits.end()) / temperature;
  double sum = 0;
  for (const double logit : model.logits)
    sum += std::exp(logit / temperature - largest);
  return largest + std::log(sum);
}

void *create(const char *options, std::uint32_t, std::uint32_t, millrace_error *error) {
  unsigned vocab_size = 0;
  double learning_rate = 0;
  if (std::sscanf(options, "%u %lf", &vocab_size, &learning_rate) != 2 || vocab_size == 0 ||
      vocab_size > 1'000'000) {
    failed(error, "trainer.policy_options: \"VOCAB_SIZE LEARNING_RATE\" is wanted");
    return nullptr;
  }
  return new unigram{std::vector<double>(vocab_size), std::vector<double>(vocab_size),
                     learning_rate};
}

void destroy(void *self) { delete &of(self); }

/// Calls visit(index, token) for all but the first token of each sequence.
template <class Visit> void for_each_token(const millrace_batch &batch, Visit visit) {
  std::size_t begin = 0;
  for (std::size_t s = 0; s < batch.sequences; ++s) {
    const auto end = begin + static_cast<std::size_t>(batch.sequence_lengths[s]);
    for (std::size_t i = begin + 1; i < end; ++i)
      visit(i, static_cast<std::size_t>(batch.input_ids[i]));
    begin = end;
  }
}

int forward(void *self, const millrace_batch *batch, float *logprobs, float *entropy,
            millrace_error *error) {
  const auto &model = of(self);
  for (std::size_t i = 0; i < batch->tokens; ++i)
    if (batch->input_ids[i] < 0 ||
        static_cast<std::size_t>(batch->input_ids[i]) >= model.logits.size())
      return failed(error, "a token id is not in the vocabulary");
  std::fill_n(logprobs, batch->tokens, 0.0F);
  std::fill_n(entropy, batch->tokens, 0.0F);
  for_each_token(*batch, [&](std::size_t i, std::size_t token) {
    const double temperature = static_cast<double>(batch->temperatures[i]);
    const double sum = log_sum_exp(model, temperature);
    logprobs[i] = static_cast<float>(model.logits[token] / temperature - sum);
    double bits = 0;
    for (const double logit : model.logits)
      bits -= std::exp(logit / temperature - sum) * (logit / temperature - sum);
    entropy[i] = static_cast<float>(bits);
  });
  return 0;
}

int backward(void *self, const millrace_batch *batch, const float *gradient, millrace_error *) {
  auto &model = of(self);
  for_each_token(*batch, [&](std::size_t i, std::size_t token) {
    const double temperature = static_cast<double>(batch->temperatures[i]);
    const double slope = static_cast<double>(gradient[i]) / temperature;
    if (slope == 0)
      return;
    const double sum = log_sum_exp(model, temperature);
    for (std::size_t k = 0; k < model.logits.size(); ++k)
      model.gradient[k] -= slope * std::exp(model.logits[k] / temperature - sum);
    model.gradient[token] += slope;
  });
  return 0;
}

int step(void *self, const millrace_update *update, millrace_error *error) {
  auto &model = of(self);
  if (update->all_reduce(update->context, model.gradient.data(), model.gradient.size()) != 0)
    return failed(error, "the gradients of the ranks do not add up");
  for (std::size_t k = 0; k < model.logits.size(); ++k)
    model.logits[k] -= model.learning_rate * model.gradient[k];
  std::fill(model.gradient.begin(), model.gradient.end(), 0.0);
  return 0;
}

int save(void *self, const char *folder, std::uint64_t step, millrace_error *error) {
  std::ofstream out(std::string(folder) + "/unigram.txt");
  out.precision(17); // every double comes back as it was
  out << step << '\n';
  for (const double logit : of(self).logits)
    out << logit << '\n';
  return out.flush() ? 0 : failed(error, "unigram.txt cannot be written");
}

int load(void *self, const char *folder, std::uint64_t *step, millrace_error *error) {
  auto logits = of(self).logits;
  std::ifstream in(std::string(folder) + "/unigram.txt");
  in >> *step;
  for (double &logit : logits)
    in >> logit;
  if (!in)
    return failed(error, "unigram.txt does not hold a step and as many logits as the vocabulary");
  of(self).logits = std::move(logits);
  return 0;
}

void reset(void *self) {
  std::fill(of(self).logits.begin(), of(self).logits.end(), 0.0);
  std::fill(of(self).gradient.begin(), of(self).gradient.end(), 0.0);
}

const millrace_policy_functions functions{sizeof(millrace_policy_functions),
                                          MILLRACE_POLICY_ABI,
                                          create,
                                          destroy,
                                          forward,
                                          backward,
                                          step,
                                          save,
                                          load,
                                          reset};

} // namespace

extern "C" const millrace_policy_functions *millrace_policy(std::uint32_t abi) {
  return abi == MILLRACE_POLICY_ABI ? &functions : nullptr;
}

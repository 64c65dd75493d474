// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/scorer/reference.hpp"
#include "runtime/result.hpp"
#include "schema/body.hpp"
#include "schema/sealed_episode.hpp"

namespace millrace {

/// Whose logprobs are asked for, and after what.
enum class reference_kind : std::uint8_t {
  teacher,     ///< opd: a teacher reads the branch
  self_hinted, ///< opsd: the live policy reads the trace's hint, then the branch
};

/// One sequence that a server reads, of which it gives the logprobs of all tokens but the first.
struct reference_prompt {
  /// Places in the GroupHeader: of the episode, of its trace, of the trainable branch in that.
  std::uint32_t episode = 0;
  std::uint32_t trace = 0;
  std::uint32_t branch = 0;
  /// The hint, if its ids are known, then the branch.
  std::vector<std::int32_t> tokens{};
  std::uint64_t hint_tokens = 0; ///< how many of `tokens` are the hint
  /// A hint whose ids are not known: the server tokenizes it, and it comes before `tokens`.
  std::string hint{};
};

/// The episodes of a group whose tokens are read, those of traces_without_reference(): indices into
/// the header's, ascending. None: there is nothing to ask.
std::vector<std::uint32_t> reference_episodes(const wire::GroupHeader &group);

/// The prompts of a group: one for each trainable branch of each of traces_without_reference(), by
/// episode, trace and branch. Pure. @param episodes those that reference_episodes() names, in that
/// order. Errors: bad_value if a trace has no hint and needs one; conflict if header and episode do
/// not fit; too_large for a prompt over limits::micro_batch_tokens.
result<std::vector<reference_prompt>> reference_prompts(const wire::GroupHeader &group,
                                                        std::span<const sealed_episode> episodes,
                                                        reference_kind kind);

/// What a server said, for annotate(). It points into `episodes`, those that the prompts were made
/// of. @param values for each prompt those of its branch, as reference_client gives them.
reference_logprobs reference_of(std::span<const reference_prompt> prompts,
                                std::vector<std::vector<float>> values,
                                std::span<const sealed_episode> episodes);

/// The values of the branch out of those of the whole prompt.
/// @param values one for each token of the hint and of the branch; the first is no logprob.
/// Shape: one for each token of the branch; NaN for a first token that nothing comes before.
std::vector<float> branch_values(std::span<const float> values, std::uint64_t hint_tokens);

/// The body of POST /v1/completions that asks for the logprobs of `tokens` and nothing else.
/// Source: vLLM, OpenAI-compatible server, completions with prompt_logprobs.
std::string completion_body(std::string_view model, std::span<const std::int32_t> tokens);

/// The body of POST /tokenize. The text is tokenized as it is, without the special tokens that
/// begin a prompt: the branch that follows has them.
std::string tokenize_body(std::string_view model, std::string_view text);

} // namespace millrace

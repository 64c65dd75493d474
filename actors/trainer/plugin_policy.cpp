// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/plugin_policy.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include "actors/trainer/policy_abi.h"

namespace millrace {

namespace {

constexpr std::size_t longest_reason = 1024;

/// What a plug-in writes its reason into.
class reason {
public:
  millrace_error *get() noexcept { return &door_; }
  std::string text() const {
    const std::string_view all(text_.data(), text_.size());
    const auto end = all.find('\0');
    return end == 0 ? "it does not say why" : std::string(all.substr(0, end));
  }

private:
  std::array<char, longest_reason> text_{};
  millrace_error door_{text_.data(), text_.size()};
};

struct library_closer {
  void operator()(void *handle) const noexcept { ::dlclose(handle); }
};
using library = std::unique_ptr<void, library_closer>;

/// For the all_reduce of one step.
struct reduce_context {
  collective &ranks;
  std::uint64_t step;
  status done;
};

int all_reduce(void *context, double *values, std::size_t count) {
  auto &in = *static_cast<reduce_context *>(context);
  if (in.done)
    in.done = in.ranks.all_reduce({"gradients", in.step}, std::span(values, count), reduction::sum);
  return in.done ? 0 : 1;
}

class plugin_policy final : public policy {
public:
  plugin_policy(std::string name, library code, const millrace_policy_functions &functions,
                void *self, const plugin_options &options)
      : name_(std::move(name)), code_(std::move(code)), functions_(functions), self_(self),
        options_(options) {}
  ~plugin_policy() override { functions_.destroy(self_); }

  status forward(const policy_batch &in, std::span<float> logprobs,
                 std::span<float> entropy) override {
    const auto batch = view(in);
    reason why;
    return check("forward",
                 functions_.forward(self_, &batch, logprobs.data(), entropy.data(), why.get()),
                 why);
  }
  status backward(const policy_batch &in, std::span<const float> gradient) override {
    const auto batch = view(in);
    reason why;
    return check("backward", functions_.backward(self_, &batch, gradient.data(), why.get()), why);
  }
  status step(const policy_update &in) override {
    reduce_context context{in.ranks, in.step, {}};
    const millrace_update update{sizeof(millrace_update), in.step,      options_.rank,
                                 options_.ranks,          in.totals.rl, in.totals.ce,
                                 in.totals.ref_kl,        &all_reduce,  &context};
    reason why;
    const auto done = functions_.step(self_, &update, why.get());
    MILLRACE_TRY(context.done); // why it failed, rather than that it did
    return check("step", done, why);
  }
  status save(const std::filesystem::path &folder, std::uint64_t step) override {
    reason why;
    return check("save", functions_.save(self_, folder.c_str(), step, why.get()), why);
  }
  result<std::uint64_t> load(const std::filesystem::path &folder) override {
    reason why;
    std::uint64_t step = 0;
    MILLRACE_TRY(check("load", functions_.load(self_, folder.c_str(), &step, why.get()), why));
    return step;
  }
  void reset() override { functions_.reset(self_); }

private:
  status check(std::string_view what, int returned, const reason &why) const {
    if (returned == 0)
      return {};
    return fail(errc::io, "policy '{}': {}: {}", name_, what, why.text());
  }

  millrace_batch view(const policy_batch &in) {
    names_.clear();
    for (const auto &name : in.tensors.env_names)
      names_.push_back(name.c_str());
    return {sizeof(millrace_batch),
            in.tensors.step,
            in.tensors.rank,
            in.tensors.index,
            in.input_ids.size(),
            in.sequence_lengths.size(),
            static_cast<std::size_t>(in.tensors.padding),
            in.input_ids.data(),
            in.position_ids.data(),
            in.loss_mask.data(),
            in.temperatures.data(),
            in.inference_logprobs.data(),
            in.sequence_lengths.data(),
            names_.data()};
  }

  const std::string name_;
  const library code_;
  const millrace_policy_functions &functions_;
  void *const self_;
  const plugin_options options_;
  std::vector<const char *> names_;
};

/// Errors: bad_config, without the library's name.
status check(const millrace_policy_functions *functions) {
  if (functions == nullptr)
    return fail(errc::bad_config, "it does not speak version {} of the policy ABI",
                MILLRACE_POLICY_ABI);
  if (functions->size < sizeof(millrace_policy_functions) || functions->abi != MILLRACE_POLICY_ABI)
    return fail(errc::bad_config,
                "it speaks version {} of the policy ABI with {} bytes of functions; this program "
                "speaks version {} with {}",
                functions->abi, functions->size, MILLRACE_POLICY_ABI,
                sizeof(millrace_policy_functions));
  if (functions->create == nullptr || functions->destroy == nullptr ||
      functions->forward == nullptr || functions->backward == nullptr ||
      functions->step == nullptr || functions->save == nullptr || functions->load == nullptr ||
      functions->reset == nullptr)
    return fail(errc::bad_config, "it lacks one of the functions of policy_abi.h");
  return {};
}

} // namespace

result<std::unique_ptr<policy>> load_policy(const plugin_options &options) {
  const auto &path = options.library;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return fail(errc::not_found, "trainer.policy: there is no library '{}'", path.string());
  // A name without a slash would be looked for elsewhere.
  library code(::dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!code)
    return fail(errc::bad_config, "trainer.policy: '{}' cannot be loaded: {}", path.string(),
                ::dlerror());
  const auto door =
      reinterpret_cast<decltype(&millrace_policy)>(::dlsym(code.get(), "millrace_policy"));
  if (door == nullptr)
    return fail(errc::bad_config, "trainer.policy: '{}' exports no function millrace_policy",
                path.string());
  const auto *functions = door(MILLRACE_POLICY_ABI);
  if (auto fits = check(functions); !fits)
    return with_context(std::move(fits).error(),
                        fmt::format("trainer.policy: '{}'", path.string()));
  reason why;
  void *self = functions->create(options.options.c_str(), options.rank, options.ranks, why.get());
  if (self == nullptr)
    return fail(errc::bad_config, "trainer.policy: '{}' does not begin: {}", path.string(),
                why.text());
  return std::make_unique<plugin_policy>(path.filename().string(), std::move(code), *functions,
                                         self, options);
}

} // namespace millrace

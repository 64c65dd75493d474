// SPDX-License-Identifier: Apache-2.0
#include "bench/hub_chain.hpp"

#include <utility>

namespace millrace::bench {

/// Passes on, on its hub's thread, what its hub receives.
class hub_chain::node final : public hub_listener {
public:
  explicit node(arrival_count &arrived) : arrived_(arrived) {}

  status start(std::string name, const std::string &bind, std::uint64_t memory_limit) {
    hub_options options;
    options.bind = bind;
    options.self = {.run = "bench",
                    .process = std::move(name),
                    .roles = {},
                    .incarnation = 1,
                    .program = "bench",
                    .config = "bench"};
    options.memory_limit = memory_limit;
    auto started = hub::start(options, *this);
    if (!started)
      return tl::unexpected(std::move(started).error());
    self_ = options.self;
    hub_ = std::move(*started);
    return {};
  }
  void join(const node &next) {
    next_ = hub_->open({.process = next.self_.process,
                        .incarnation = next.self_.incarnation,
                        .endpoint = next.hub_->endpoint()});
  }
  void send(message parts) { hub_->send(next_, lane::data, std::move(parts)); }
  void stop() { hub_.reset(); }

  void received(const process_identity &, message parts) override {
    if (next_ != 0)
      return send(std::move(parts));
    arrived_.add();
  }
  void asked(request_id, message) override {}
  void link_changed(link_id, link_state, const std::string &) override {}
  void room_came(link_id) override {}

private:
  arrival_count &arrived_;
  process_identity self_;
  std::unique_ptr<hub> hub_;
  link_id next_ = 0; ///< 0: the last node. Set before anything is sent
};

hub_chain::hub_chain() = default;

hub_chain::~hub_chain() {
  for (auto &one : nodes_)
    one->stop(); // before any node goes: its hub calls it
}

result<std::unique_ptr<hub_chain>> hub_chain::start(const std::vector<std::string> &binds,
                                                    std::uint64_t memory_limit) {
  std::unique_ptr<hub_chain> made(new hub_chain);
  for (const auto &bind : binds) {
    auto one = std::make_unique<node>(made->arrived_);
    MILLRACE_TRY(one->start(fmt::format("node-{}", made->nodes_.size()), bind, memory_limit));
    made->nodes_.push_back(std::move(one));
  }
  for (std::size_t i = 0; i + 1 < made->nodes_.size(); ++i)
    made->nodes_[i]->join(*made->nodes_[i + 1]);
  return made;
}

void hub_chain::run(const load &what) {
  arrived_.expect(what.count);
  for (std::size_t i = 0; i < what.count; ++i)
    nodes_.front()->send({what.message(i)});
  arrived_.wait();
}

} // namespace millrace::bench

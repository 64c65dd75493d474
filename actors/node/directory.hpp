// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "actors/node/directory_table.hpp"
#include "actors/node/post.hpp"

namespace millrace {

/// Looks whether leases have run out. From the directory to itself.
struct check_leases {};

/// Knows every process of a run: takes their news, tells all of them what has changed, and answers
/// tools. What it knows is only in memory: after a restart all register again, and links go on
/// without it.
class directory : public stage_actor {
public:
  directory(caf::actor_config &config, const actor_context &context, directory_options options,
            std::shared_ptr<post> office);

  caf::behavior make_behavior() override;
  void on_exit() override { office_.reset(); }

private:
  void take_mail(const host_mail &in);
  void answer_tool(const tool_mail &in);
  void check(const check_leases &);

  void take_news(const process_identity &from, const process_alive &news);
  tool_answer drain_one(const std::string &name);
  void push_changes();

  const std::chrono::milliseconds lease_;
  directory_table table_;
  std::shared_ptr<post> office_;
  std::set<std::string> told_; ///< processes that get changes
};

} // namespace millrace

MILLRACE_MESSAGE(millrace::check_leases)

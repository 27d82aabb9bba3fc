// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "ground/comm/account.hpp"
#include "ground/executor/executor.hpp"

namespace tailrace::session {

/// An executor that knows how many of its jobs are not over. Where jobs run inside the call, it counts their
/// time in the account of the calling thread. Only the submitting thread uses it.
class CountingExecutor final : public executor::Executor {
 public:
  /// `own` is the account of the calling thread if jobs run inside the call, otherwise nullptr.
  CountingExecutor(std::unique_ptr<executor::Executor> below, comm::Account* own)
      : below_(std::move(below)), own_(own) {}

  [[nodiscard]] int count() const override { return below_->count(); }
  [[nodiscard]] int threads() const override { return below_->threads(); }
  void compute(Job job, Done done) override {
    ++computing_;
    std::optional<comm::Account::Turn> turn;
    if (own_ != nullptr) turn.emplace(*own_, comm::Routine::work);
    below_->compute(std::move(job), [this, done = std::move(done)](Status status) {
      --computing_;
      is_news_ = true;
      done(std::move(status));
    });
  }
  void wait(executor::Key key, Job job, Done done) override {
    ++waiting_;
    std::optional<comm::Account::Turn> turn;
    if (own_ != nullptr) turn.emplace(*own_, comm::Routine::work);
    below_->wait(key, std::move(job), [this, done = std::move(done)](Status status) {
      --waiting_;
      is_news_ = true;
      done(std::move(status));
    });
  }
  /// Queues a job that nobody waits for.
  void wait_uncounted(executor::Key key, Job job) {
    below_->wait(key, std::move(job), [](const Status&) {});
  }
  /// An uncounted job that is over does not count here either.
  bool poll() override {
    is_news_ = false;
    below_->poll();
    return is_news_;
  }

  /// Return how many jobs that compute, and that wait, have not had their `done` yet.
  [[nodiscard]] int computing() const { return computing_; }
  [[nodiscard]] int waiting() const { return waiting_; }

 private:
  const std::unique_ptr<executor::Executor> below_;
  comm::Account* const own_;
  int computing_ = 0;
  int waiting_ = 0;
  bool is_news_ = false;
};

}  // namespace tailrace::session

// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/agreement.hpp"
#include "comm/mpi_transport.hpp"
#include "executor/ordered_pool.hpp"
#include "session/session.hpp"

namespace tailrace::checkpoint {

class Service;

/// One sequence of agreements among all ranks, beside that of the session: a save that goes on behind the
/// program moves on at different moments of it on every rank.
class Line {
 public:
  /// Collective: lines are made in the same order on every rank.
  explicit Line(Service& service);
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  /// Local.
  std::uint64_t post(comm::Vote vote) { return agreements_.post(std::move(vote)); }
  std::optional<comm::Verdict> take(std::uint64_t number) { return agreements_.take(number); }

 private:
  friend class Service;
  /// The service's messages, with the number of the line before them.
  class Numbered final : public comm::Transport {
   public:
    Numbered(comm::Transport& below, std::uint32_t line) : below_(below), line_(line) {}
    [[nodiscard]] int rank() const override { return below_.rank(); }
    [[nodiscard]] int size() const override { return below_.size(); }
    void send(int destination, comm::Channel channel, ByteVector bytes) override;
    bool progress() override { return below_.progress(); }
    std::optional<comm::Envelope> receive() override { return std::nullopt; }
    std::optional<ByteVector> receive_data(int) override { return std::nullopt; }
    [[nodiscard]] Bytes unsent() const override { return below_.unsent(); }
    [[nodiscard]] std::int64_t now() const override { return below_.now(); }

   private:
    comm::Transport& below_;
    std::uint32_t line_;
  };

  Service& service_;
  const std::uint32_t number_;
  Numbered transport_;
  comm::Agreements agreements_;
};

/// What all checkpoints of one process share: messages on a communicator of their own, and the thread that
/// writes.
class Service {
 public:
  /// Collective over the session's compute ranks.
  static Result<std::unique_ptr<Service>> create(session::Session& session);
  /// Collective: nothing is on its way any more.
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[nodiscard]] session::Session& session() { return session_; }
  [[nodiscard]] storage::Target& target() { return session_.target(); }
  [[nodiscard]] comm::Transport& transport() { return *transport_; }
  [[nodiscard]] int rank() const { return transport_->rank(); }
  [[nodiscard]] int size() const { return transport_->size(); }
  [[nodiscard]] executor::OrderedPool& pool() { return pool_; }
  executor::OrderedPool::Key new_key() { return next_key_++; }
  /// What moves on whenever the session does; until it is removed.
  int add_work(std::function<bool()> advance);
  void remove_work(int number) { work_.erase(number); }

 private:
  friend class Line;
  Service(session::Session& session, std::unique_ptr<comm::MpiTransport> transport);
  bool advance();

  session::Session& session_;
  std::unique_ptr<comm::MpiTransport> transport_;
  executor::OrderedPool pool_;
  executor::OrderedPool::Key next_key_ = 0;
  std::uint32_t next_line_ = 0;
  std::map<std::uint32_t, Line*> lines_;
  std::map<int, std::function<bool()>> work_;
  int next_work_ = 0;
  int activity_ = 0;
};

}  // namespace tailrace::checkpoint

// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "checkpoint/service.hpp"

#include <numeric>

#include "base/log.hpp"
#include "base/text.hpp"

namespace tailrace::checkpoint {

namespace {

std::vector<int> count_up_to(int size) {
  std::vector<int> numbers(static_cast<std::size_t>(size));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

// ---- line

void Line::Numbered::send(int destination, comm::Channel channel, ByteVector bytes) {
  Packer out;
  out.put(line_);
  ByteVector numbered = out.take();
  numbered.insert(numbered.end(), bytes.begin(), bytes.end());
  below_.send(destination, channel, std::move(numbered));
}

Line::Line(Service& service)
    : service_(service),
      number_(service.next_line_++),
      transport_(service.transport(), number_),
      agreements_(transport_, count_up_to(service.size()), service.rank()) {
  service_.lines_[number_] = this;
}

Line::~Line() { service_.lines_.erase(number_); }

// ---- service

Result<std::unique_ptr<Service>> Service::create(session::Session& session) {
  Result<std::unique_ptr<comm::MpiTransport>> transport = comm::MpiTransport::create(session.compute());
  TR_TRY(transport.status());
  return std::unique_ptr<Service>(new Service(session, std::move(*transport)));
}

Service::Service(session::Session& session, std::unique_ptr<comm::MpiTransport> transport)
    : session_(session), transport_(std::move(transport)), pool_(session.settings().io_threads > 0 ? 1 : 0) {
  activity_ = session_.add_work([this] { return advance(); });
}

Service::~Service() {
  session_.remove_work(activity_);
  while (transport_->unsent() > 0) transport_->progress();
  transport_->free();
}

int Service::add_work(std::function<bool()> advance) {
  work_[next_work_] = std::move(advance);
  return next_work_++;
}

bool Service::advance() {
  bool moved = transport_->progress();
  while (const std::optional<comm::Envelope> envelope = transport_->receive()) {
    moved = true;
    Unpacker in(envelope->bytes);
    const auto line = lines_.find(in.get<std::uint32_t>());
    const auto kind = in.get<std::uint32_t>();
    if (line != lines_.end() && line->second->agreements_.on_message(kind, envelope->source, in)) continue;
    log(LogLevel::error,
        cat("checkpoints: a message of unknown kind ", kind, " from rank ", envelope->source));
  }
  for (const auto& [number, advance] : work_) moved = advance() || moved;
  return moved;
}

}  // namespace tailrace::checkpoint

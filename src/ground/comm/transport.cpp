// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/transport.hpp"

#include <sched.h>

#include <ctime>

#include "ground/comm/end_job.hpp"

namespace tailrace::comm {

std::int64_t Transport::now() const {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Transport::idle(std::int64_t nanoseconds, const std::string&) {
  if (nanoseconds == 0) {
    ::sched_yield();
    return;
  }
  const timespec time{0, static_cast<long>(nanoseconds)};
  ::nanosleep(&time, nullptr);
}

void SharedTransport::send(int destination, LineNumber line, Traffic traffic, ByteVector bytes) {
  const std::lock_guard lock(mutex_);
  transport_->send(destination, line, traffic, std::move(bytes));
}

bool SharedTransport::progress() {
  const std::lock_guard lock(mutex_);
  return transport_->progress();
}

std::optional<Envelope> SharedTransport::receive() {
  const std::lock_guard lock(mutex_);
  return transport_->receive();
}

std::optional<Envelope> SharedTransport::receive_request() {
  const std::lock_guard lock(mutex_);
  return transport_->receive_request();
}

std::optional<ByteVector> SharedTransport::receive_from(int source, LineNumber line, Traffic traffic) {
  const std::lock_guard lock(mutex_);
  return committed("taking what another rank has sent",
                   [&] { return transport_->receive_from(source, line, traffic); });
}

Bytes SharedTransport::unsent(LineNumber line, Traffic traffic) const {
  const std::lock_guard lock(mutex_);
  return transport_->unsent(line, traffic);
}

bool SharedTransport::all_sent() const {
  const std::lock_guard lock(mutex_);
  return transport_->all_sent();
}

void SharedTransport::keep_memory(Bytes most) {
  const std::lock_guard lock(mutex_);
  transport_->keep_memory(most);
}

ByteVector SharedTransport::memory(Bytes size) {
  const std::lock_guard lock(mutex_);
  return transport_->memory(size);
}

void SharedTransport::give_back(ByteVector bytes) {
  const std::lock_guard lock(mutex_);
  transport_->give_back(std::move(bytes));
}

void SharedTransport::exclusively(const std::function<void()>& call) {
  const std::lock_guard lock(mutex_);
  transport_->exclusively(call);
}

std::int64_t SharedTransport::now() const { return is_connected() ? transport_->now() : Transport::now(); }

void SharedTransport::idle(std::int64_t nanoseconds, const std::string& what) {
  if (is_connected())
    transport_->idle(nanoseconds, what);
  else
    Transport::idle(nanoseconds, what);
}

}  // namespace tailrace::comm

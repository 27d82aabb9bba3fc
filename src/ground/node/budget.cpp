// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/node/budget.hpp"

#include "ground/base/text.hpp"

namespace tailrace::node {

namespace {

constexpr std::array<std::string_view, uses> names{"staging",   "stripes",     "captures", "portions",
                                                   "intervals", "coordinates", "pages",    "input"};

void raise(std::atomic<Bytes>& most, Bytes value) {
  for (Bytes before = most; before < value && !most.compare_exchange_weak(before, value);) continue;
}

}  // namespace

std::string Budget::text(std::atomic<Bytes> Account::Sum::*value) const {
  std::string parts;
  for (std::size_t i = 0; i < uses; ++i) {
    const Bytes bytes = account_->by_use[i].*value;
    if (bytes > 0) parts += cat(parts.empty() ? "" : ", ", names[i], " ", size_text(bytes));
  }
  return cat(size_text(account_->all.*value), parts.empty() ? "" : cat(" (", parts, ")"));
}

std::string Budget::most_text() const { return text(&Account::Sum::most); }

Status Budget::take(Use use, Bytes bytes) {
  Account::Sum& all = account_->all;
  Bytes before = all.now;
  do {
    if (bytes > limit_ - before) {
      ++account_->refusals;
      return {Code::memory, cat(size_text(bytes), " more would exceed the ", size_text(limit_),
                                " that the library may take on a node (TAILRACE_MEMORY): ",
                                text(&Account::Sum::now), " are taken")};
    }
  } while (!all.now.compare_exchange_weak(before, before + bytes));
  raise(all.most, before + bytes);
  Account::Sum& own = account_->by_use[static_cast<std::size_t>(use)];
  raise(own.most, own.now.fetch_add(bytes) + bytes);
  return {};
}

void Budget::give_back(Use use, Bytes bytes) {
  account_->by_use[static_cast<std::size_t>(use)].now -= bytes;
  account_->all.now -= bytes;
}

Status Draw::take(Bytes bytes) {
  TR_TRY(budget_.take(use_, bytes));
  bytes_ += bytes;
  return {};
}

void Draw::give_back(Bytes bytes) {
  bytes_ -= bytes;
  budget_.give_back(use_, bytes);
}

}  // namespace tailrace::node

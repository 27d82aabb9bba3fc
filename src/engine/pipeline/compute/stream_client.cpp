// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/compute/stream_client.hpp"

#include <utility>

#include "ground/base/text.hpp"

namespace tailrace::pipeline {

using node::Descriptor;

void StreamClient::latch(const Status& status) {
  if (status.is_ok()) return;
  // The next step tells an error outside of a step, and within an interval the step that completes it. The
  // step before may have told its own failure already, and nothing is told of a step twice.
  // It counts as earlier than the step's records, since ranks may differ in these because of it.
  const bool is_in_step = in_step_ && !is_within_;
  latched_ =
      first_cause(latched_, status.at({is_in_step ? step_ : step_ + 1, is_in_step ? operation_ : -1, me_}));
}

void StreamClient::keep(const Status& status) {
  const Cause cause = status.cause();
  latched_ = first_cause(latched_, status.at({step_ + 1, cause.operation, cause.rank}));
}

bool StreamClient::begin(std::int64_t lead, bool is_lost) {
  if (in_step_) {
    latch(Status(Code::state, cat("tr_stream_begin(", time_.at(lead), ") inside the step at ",
                                  time_.at(lead_), ": tr_stream_end comes first")));
    return false;
  }
  in_step_ = has_begun_ = true;
  if (out_of_step_) return false;
  ++step_;
  operation_ = 0;
  lead_before_ = std::exchange(lead_, lead);
  if (is_lost) return true;
  if (behind_ && lead <= *behind_) {
    latch(Status(Code::order, cat(time_.at(lead), ": the stream continues behind ", time_.at(*behind_),
                                  ", which its checkpoint has")));
  } else if (last_lead_ && lead < *last_lead_) {
    latch(Status(Code::order, cat(time_.at(lead), " goes back in time: the step before was at ",
                                  time_.text(*last_lead_))));
  } else {
    last_lead_ = lead;
  }
  return true;
}

bool StreamClient::begin_within() {
  if (in_step_) return false;
  in_step_ = is_within_ = has_begun_ = true;
  put_off_records();
  return !out_of_step_;
}

Descriptor StreamClient::descriptor(Descriptor::Kind kind) const {
  return {.kind = kind,
          .stream = id(),
          .step = step_,
          .lead = lead_,
          .field = definitions_.defined(),
          .level = definitions_.reference(),
          .stamp = kind == Descriptor::Kind::begin ? lead_before_ : line_.now()};
}

Told StreamClient::end(const Counters& counters, const std::optional<Process>& process) {
  in_step_ = false;
  Packer packed;
  std::exchange(latched_, Status()).pack(packed);
  packed.put(counters);
  if (process) packed.put(*process);
  return {descriptor(Descriptor::Kind::end), packed.take()};
}

bool StreamClient::is_known(std::int64_t step, bool durable) const {
  return step < 0 || (durable ? verdicts_.durable_through() >= step : verdicts_.is_accepted(step));
}

Status StreamClient::verdict(std::int64_t step, bool durable) {
  if (durable) return verdicts_.report_failures(step);
  return step < 0 ? Status() : verdicts_.report_accepted(step);
}

Status StreamClient::closing_vote() {
  closing_ = true;
  return std::exchange(latched_, Status());
}

Status StreamClient::close_verdict(const Status& misuse) {
  if (!misuse.is_ok()) return misuse;
  const Status status = verdicts_.report_failures(step_);
  return status.is_ok() && verdicts_.finished() ? *verdicts_.finished() : status;
}

std::vector<Told> StreamClient::put_out_of_step(const Status& why, bool servers_know) {
  out_of_step_ = why;
  unsettled_ = false;
  std::vector<Told> told;
  if (!servers_know) return told;
  told_closed_ = true;
  if (in_step_ && !is_within_) {
    // The other ranks wait for the step's end, and the step must fail.
    latched_ = why.at({step_, operation_, me_});
    told.push_back(end({}));
    in_step_ = true;
  }
  told.push_back({descriptor(Descriptor::Kind::close), {}});
  return told;
}

}  // namespace tailrace::pipeline

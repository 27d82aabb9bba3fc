// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/status.hpp"

#include <cerrno>
#include <cstring>

#include "ground/base/text.hpp"

namespace tailrace {

Status::Status(Code code, std::string text, int error_number)
    : Status(Body{code, error_number, {}, std::move(text)}) {}

Status::Status(Body body) {
  if (body.code != Code::ok) body_ = std::make_shared<const Body>(std::move(body));
}

const std::string& Status::text() const {
  // Never destroyed: handlers of atexit(3) ask for texts.
  static const std::string& none = *new const std::string();
  return body_ ? body_->text : none;
}

Status Status::at(Cause cause) const {
  if (is_ok()) return {};
  Body body = *body_;
  body.cause = cause;
  return Status(std::move(body));
}

Status Status::in(std::string_view context) const {
  if (is_ok()) return {};
  Body body = *body_;
  body.text = cat(context, ": ", body.text);
  return Status(std::move(body));
}

void Status::pack(Packer& out) const {
  out.put(code());
  if (is_ok()) return;
  out.put(body_->error_number).put(body_->cause.step).put(body_->cause.operation);
  out.put(body_->cause.rank).put_text(body_->text);
}

Status Status::unpack(Unpacker& in) {
  Body body;
  body.code = in.get<Code>();
  if (body.code == Code::ok) return {};
  body.error_number = in.get<int>();
  body.cause.step = in.get<std::int64_t>();
  body.cause.operation = in.get<std::int64_t>();
  body.cause.rank = in.get<std::int32_t>();
  body.text = in.get_text();
  return Status(std::move(body));
}

Status io_error(std::string_view operation, std::string_view path, int error_number) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT;
  return {full ? Code::space : Code::io,
          cat(operation, " ", path, ": ", std::string_view(std::strerror(error_number))), error_number};
}

const Status& first_cause(const Status& a, const Status& b) {
  if (a.is_ok()) return b;
  if (b.is_ok()) return a;
  return b.cause() < a.cause() ? b : a;
}

}  // namespace tailrace

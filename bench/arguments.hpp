// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdlib>
#include <map>
#include <string>

namespace bench {

/// "--name value" and "--switch" of a command line. Only our own drivers write these, so an unknown name is
/// simply never asked for.
class Arguments {
 public:
  Arguments(int count, char** words) {
    for (int i = 1; i < count; ++i) {
      const std::string name = words[i];
      const bool has_value = i + 1 < count && std::string(words[i + 1]).rfind("--", 0) != 0;
      values_[name] = has_value ? words[++i] : "";
    }
  }
  [[nodiscard]] bool has(const std::string& name) const { return values_.count(name) != 0; }
  [[nodiscard]] std::string text(const std::string& name, const std::string& otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  [[nodiscard]] long number(const std::string& name, long otherwise) const {
    return has(name) ? std::atol(values_.at(name).c_str()) : otherwise;
  }
  [[nodiscard]] double real(const std::string& name, double otherwise) const {
    return has(name) ? std::atof(values_.at(name).c_str()) : otherwise;
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace bench

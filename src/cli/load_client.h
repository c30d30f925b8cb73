// Sends a workload to a server of the OpenAI API and times the answers.
//
// One thread waits for all connections (libcurl's multi interface). In an open loop a request goes out when its time
// has come, whatever became of the others; in a closed loop, when another has ended.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/completion_stream.h"
#include "octavo/result.h"
#include "octavo/workload.h"

namespace octavo {

struct Endpoint {
  std::string url;                  // "http://127.0.0.1:8080"; a trailing /v1 is understood, too
  std::string api_key;              // empty: none is sent
  std::chrono::seconds stall{600};  // without a byte, after which a request has failed
};

/// Fails where `url` is none that can be asked.
[[nodiscard]] Result<std::string> url_of(const Endpoint& endpoint, const std::string& path);

/// The id of the first model that the server lists. kUnavailable: nobody answers.
[[nodiscard]] Result<std::string> first_model(const Endpoint& endpoint);

struct TimedAnswer {
  double sent_ms = 0;  // since the start of the load
  double late_ms = 0;  // behind its arrival: this program was busy
  double end_ms = 0;   // since it was sent: the whole response is there
  StreamedAnswer answer;
};

struct LoadRun {
  double seconds = 0;                // from the start to the end of the last response
  std::vector<TimedAnswer> answers;  // as the workload's requests
};

/// POSTs `body(i)` for each request to /v1/completions. Failed requests are answers with an error. `done` is told how
/// many have ended.
[[nodiscard]] Result<LoadRun> run_load(const Endpoint& endpoint, const Workload& workload,
                                       const std::function<std::string(std::size_t)>& body,
                                       const std::function<void(std::size_t)>& done);

}  // namespace octavo

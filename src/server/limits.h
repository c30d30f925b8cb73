// What one client may cost: sizes, counts and times of the HTTP side.
#pragma once
#include <chrono>
#include <cstddef>

namespace octavo {

struct HttpLimits {
  std::size_t max_connections = 1024;               // more are answered 503 and closed
  std::size_t max_header_bytes = 32 << 10;          // 431
  std::size_t max_body_bytes = 10 << 20;            // 413
  std::size_t max_pipelined_bytes = 64 << 10;       // read ahead of the request in work; then the socket waits
  std::size_t max_unsent_bytes = 1 << 20;           // of a stream whose reader is slow; then the request is aborted
  std::chrono::milliseconds header_timeout{10000};  // from a request's first byte to the end of its header; 408
  std::chrono::milliseconds body_timeout{60000};    // from there to the end of its body; 408
  std::chrono::milliseconds idle_timeout{75000};    // between requests
  std::chrono::milliseconds write_timeout{30000};   // without any byte taken by the client
  std::chrono::milliseconds ping_interval{30000};   // a silent event stream gets a comment line
};

}  // namespace octavo

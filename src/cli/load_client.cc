#include "cli/load_client.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "cli/jsonl.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;
using Millis = std::chrono::duration<double, std::milli>;

constexpr std::size_t kMaxErrorBody = 4096, kMaxModelList = 1U << 20U;
constexpr long kConnectSeconds = 30;
constexpr int kBurst = 16;  // requests that go out before those under way are looked after again

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, FreeEasy>;
using Headers = std::unique_ptr<curl_slist, FreeList>;

bool start_curl() {
  static const bool started = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return started;
}

Error no_curl() { return {ErrorCode::kInternal, "libcurl does not start", ""}; }

Headers headers_of(const Endpoint& endpoint) {
  curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
  list = curl_slist_append(list, "Expect:");  // no asking whether a long prompt may be sent
  if (!endpoint.api_key.empty()) {
    list = curl_slist_append(list, fmt::format("Authorization: Bearer {}", endpoint.api_key).c_str());
  }
  return Headers(list);
}

using Write = std::size_t (*)(char* data, std::size_t size, std::size_t count, void* to);

/// What every request has in common. `headers` and `to` outlive the handle's use.
void set_up(CURL* easy, const Endpoint& endpoint, const std::string& url, const Headers& headers, Write write,
            void* to) {
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_PROXY, "");  // it would be measured, too
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, std::min(kConnectSeconds, static_cast<long>(endpoint.stall.count())));
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, static_cast<long>(endpoint.stall.count()));
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, to);
}

long status_of(CURL* easy) {
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

/// As many connections as the system lets this process have.
void raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // a refusal shows as connections that fail
}

std::size_t append_bounded(char* data, std::size_t size, std::size_t count, void* to) {
  std::string& text = *static_cast<std::string*>(to);
  if (text.size() + size * count > kMaxModelList) return 0;  // ends the transfer
  text.append(data, size * count);
  return size * count;
}

/// One request under way.
struct Transfer {
  Easy easy{curl_easy_init()};
  std::size_t index = 0;
  Clock::time_point sent;
  std::string body, error_body;
  CompletionStream stream;

  static std::size_t take(char* data, std::size_t size, std::size_t count, void* to) {
    Transfer& self = *static_cast<Transfer*>(to);
    const std::size_t bytes = size * count;
    if (status_of(self.easy.get()) == 200) {
      self.stream.add({data, bytes}, Millis(Clock::now() - self.sent).count());
    } else if (self.error_body.size() < kMaxErrorBody) {
      self.error_body.append(data, std::min(bytes, kMaxErrorBody - self.error_body.size()));
    }
    return bytes;
  }
};

class Load {
 public:
  Load(const Endpoint& endpoint, std::string url, const Workload& workload,
       const std::function<std::string(std::size_t)>& body)
      : endpoint_(endpoint), url_(std::move(url)), workload_(workload), body_(body), headers_(headers_of(endpoint)) {
    run_.answers.resize(workload.requests.size());
  }

  Result<LoadRun> run(const std::function<void(std::size_t)>& done) {
    if (!multi_) return no_curl();
    begin_ = Clock::now();
    while (ended_ < workload_.requests.size()) {
      for (int burst = 0; burst < kBurst && is_due(); ++burst) OCTAVO_CHECK_OK(start(next_++));
      int running = 0;
      if (curl_multi_perform(multi_.get(), &running) != CURLM_OK) return no_curl();
      if (collect()) {
        done(ended_);
        continue;  // in a closed loop the next are due
      }
      if (curl_multi_poll(multi_.get(), nullptr, 0, wait_ms(), nullptr) != CURLM_OK) return no_curl();
    }
    return std::move(run_);
  }

 private:
  [[nodiscard]] bool is_due() const {
    if (next_ == workload_.requests.size()) return false;
    if (workload_.concurrency) return next_ - ended_ < *workload_.concurrency;
    return Clock::now() - begin_ >= workload_.requests[next_].arrival;
  }

  /// Until the next arrival; at most a second, for libcurl's own clocks.
  [[nodiscard]] int wait_ms() const {
    constexpr double kMost = 1000;
    if (is_due()) return 0;
    if (workload_.concurrency || next_ == workload_.requests.size()) return static_cast<int>(kMost);
    const double left = Millis(workload_.requests[next_].arrival - (Clock::now() - begin_)).count();
    return static_cast<int>(std::clamp(std::ceil(left), 0.0, kMost));
  }

  Result<> start(std::size_t index) {
    if (idle_.empty()) idle_.push_back(std::make_unique<Transfer>());
    std::unique_ptr<Transfer> transfer = std::move(idle_.back());
    idle_.pop_back();
    Transfer& t = *transfer;
    if (!t.easy) return no_curl();
    t.index = index;
    t.body = body_(index);
    t.error_body.clear();
    t.stream = {};
    set_up(t.easy.get(), endpoint_, url_, headers_, &Transfer::take, &t);
    curl_easy_setopt(t.easy.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(t.body.size()));
    curl_easy_setopt(t.easy.get(), CURLOPT_POSTFIELDS, t.body.data());
    curl_easy_setopt(t.easy.get(), CURLOPT_PRIVATE, &t);
    t.sent = Clock::now();
    TimedAnswer& answer = run_.answers[index];
    answer.sent_ms = Millis(t.sent - begin_).count();
    if (!workload_.concurrency) answer.late_ms = answer.sent_ms - Millis(workload_.requests[index].arrival).count();
    if (curl_multi_add_handle(multi_.get(), t.easy.get()) != CURLM_OK) return no_curl();
    busy_.push_back(std::move(transfer));
    return Ok{};
  }

  /// Takes what has ended off the list. False: nothing has.
  bool collect() {
    bool any = false;
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      CURL* easy = message->easy_handle;
      Transfer* transfer = nullptr;
      curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
      end(*transfer, code);
      curl_multi_remove_handle(multi_.get(), easy);
      const auto place = std::ranges::find(busy_, transfer, &std::unique_ptr<Transfer>::get);
      idle_.push_back(std::move(*place));
      *place = std::move(busy_.back());
      busy_.pop_back();
      ++ended_;
      any = true;
    }
    return any;
  }

  void end(Transfer& t, CURLcode code) {
    const auto now = Clock::now();
    TimedAnswer& timed = run_.answers[t.index];
    timed.end_ms = Millis(now - t.sent).count();
    run_.seconds = std::chrono::duration<double>(now - begin_).count();
    const long status = status_of(t.easy.get());
    timed.answer = t.stream.finish();
    if (code == CURLE_OPERATION_TIMEDOUT && status == 200) {
      timed.answer.error = fmt::format("no byte for {} s", endpoint_.stall.count());
    } else if (code != CURLE_OK) {
      timed.answer.error = curl_easy_strerror(code);  // equal mistakes read alike
    } else if (status != 200) {
      timed.answer.error = fmt::format("HTTP {}: {}", status, error_message(t.error_body));
    }
  }

  const Endpoint& endpoint_;
  const std::string url_;
  const Workload& workload_;
  const std::function<std::string(std::size_t)>& body_;
  const Headers headers_;
  std::unique_ptr<CURLM, FreeMulti> multi_{curl_multi_init()};
  std::vector<std::unique_ptr<Transfer>> busy_, idle_;  // freed before multi_, which allows it
  Clock::time_point begin_;
  std::size_t next_ = 0, ended_ = 0;
  LoadRun run_;
};

}  // namespace

Result<std::string> url_of(const Endpoint& endpoint, const std::string& path) {
  std::string base = endpoint.url;
  while (base.ends_with('/')) base.pop_back();
  if (base.ends_with("/v1")) base.resize(base.size() - 3);
  const bool known = base.starts_with("http://") || base.starts_with("https://");
  if (!known || base.ends_with('/') || base.find_first_of(" \t\r\n?#") != std::string::npos) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--url '{}' is not like http://127.0.0.1:8080 or https://host/v1", endpoint.url), "--url"};
  }
  return base + path;
}

Result<std::string> first_model(const Endpoint& endpoint) {
  OCTAVO_TRY(const std::string url, url_of(endpoint, "/v1/models"));
  const Easy easy(start_curl() ? curl_easy_init() : nullptr);
  if (!easy) return no_curl();
  const Headers headers = headers_of(endpoint);
  std::string body;
  char error[CURL_ERROR_SIZE] = "";
  set_up(easy.get(), endpoint, url, headers, append_bounded, &body);
  curl_easy_setopt(easy.get(), CURLOPT_ERRORBUFFER, error);
  if (const CURLcode code = curl_easy_perform(easy.get()); code != CURLE_OK) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{}: {}", url, error[0] != '\0' ? error : curl_easy_strerror(code)), "--url"};
  }
  if (const long status = status_of(easy.get()); status != 200) {
    return Error{ErrorCode::kUnavailable, fmt::format("{}: HTTP {}: {}", url, status, error_message(body)), "--url"};
  }
  const Json value = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (value.is_object() && value.contains("data") && value["data"].is_array() && !value["data"].empty()) {
    const Json& model = value["data"].front();
    if (model.is_object() && model.contains("id") && model["id"].is_string()) return model["id"].get<std::string>();
  }
  return Error{ErrorCode::kUnavailable, fmt::format("{} lists no model: name one by --model", url), "--model"};
}

Result<LoadRun> run_load(const Endpoint& endpoint, const Workload& workload,
                         const std::function<std::string(std::size_t)>& body,
                         const std::function<void(std::size_t)>& done) {
  OCTAVO_TRY(std::string url, url_of(endpoint, "/v1/completions"));
  if (!start_curl()) return no_curl();
  raise_open_files();
  return Load(endpoint, std::move(url), workload, body).run(done);
}

}  // namespace octavo

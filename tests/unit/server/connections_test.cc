// Sockets and their habits: leaving, dawdling, flooding, pipelining, draining.
#include <atomic>

#include "running_server.h"

namespace octavo {
namespace {

using std::chrono::milliseconds;

FakeEngineConfig slow(milliseconds prefill, milliseconds token, std::uint32_t max_running = 64) {
  FakeEngineConfig config;
  config.prefill_delay = prefill;
  config.token_delay = token;
  config.max_running = max_running;
  return config;
}

const json kLong{{"prompt", "x"}, {"max_tokens", 1000}};

/// Starts a request, waits for `when`, leaves; the engine must see the abort and be idle again.
void expect_abort(const RunningServer& running, bool stream, const std::function<bool()>& when) {
  Client client(running.port());
  json request = kLong;
  request["stream"] = stream;
  client.send_request("POST", "/v1/completions", request.dump());
  ASSERT_TRUE(eventually(when));
  client.close();
  EXPECT_TRUE(eventually([&] { return running.engine.aborted() > 0; }));
  EXPECT_TRUE(eventually([&] { return running.engine.stats().running + running.engine.stats().waiting == 0; }));
}

TEST(Leaving, WhilePrefilling) {
  for (const bool stream : {false, true}) {
    const RunningServer running(slow(milliseconds(20000), milliseconds(1)));
    expect_abort(running, stream, [&] { return running.engine.stats().running == 1; });
  }
}

TEST(Leaving, WhileDecoding) {
  for (const bool stream : {false, true}) {
    const RunningServer running(slow(milliseconds(0), milliseconds(50)));
    expect_abort(running, stream, [&] { return running.engine.stats().generated_tokens > 2; });
  }
}

TEST(Leaving, WhileQueuedLeavesTheOthersAlone) {
  for (const bool stream : {false, true}) {
    const RunningServer running(slow(milliseconds(300), milliseconds(2), 1));
    Client first(running.port());
    first.send_request("POST", "/v1/completions", json{{"prompt", "x"}, {"max_tokens", 5}}.dump());
    ASSERT_TRUE(eventually([&] { return running.engine.stats().running == 1; }));
    Client second(running.port());
    json request = kLong;
    request["stream"] = stream;
    second.send_request("POST", "/v1/completions", request.dump());
    ASSERT_TRUE(eventually([&] { return running.engine.stats().waiting == 1; }));
    second.close();
    EXPECT_TRUE(eventually([&] { return running.engine.aborted() == 1; }));
    EXPECT_EQ(first.read().json()["usage"]["completion_tokens"], 5);
  }
}

TEST(Leaving, HalfOfManyStreams) {
  const RunningServer running(slow(milliseconds(0), milliseconds(20)));
  std::vector<std::unique_ptr<Client>> clients;
  json request = kLong;
  request["stream"] = true;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<Client>(running.port()));
    clients.back()->send_request("POST", "/v1/completions", request.dump());
  }
  ASSERT_TRUE(eventually([&] { return running.engine.stats().running == 20; }));
  for (std::size_t i = 0; i < 20; i += 2) clients[i]->close();
  EXPECT_TRUE(eventually([&] { return running.engine.stats().running == 10; }));
  clients.clear();
  EXPECT_TRUE(eventually([&] { return running.engine.stats().running == 0; }));
}

TEST(Leaving, EveryPromptOfAListIsAborted) {
  const RunningServer running(slow(milliseconds(0), milliseconds(50)));
  Client client(running.port());
  client.send_request("POST", "/v1/completions", json{{"prompt", {"a", "b", "c"}}, {"max_tokens", 1000}}.dump());
  ASSERT_TRUE(eventually([&] { return running.engine.stats().running == 3; }));
  client.close();
  EXPECT_TRUE(eventually([&] { return running.engine.aborted() == 3; }));
}

TEST(Dawdling, AHeaderThatNeverEnds) {
  ServerConfig config;
  config.limits.header_timeout = milliseconds(200);
  const RunningServer running({}, config);
  Client client(running.port());
  client.send("GET /health HTTP/1.1\r\nX: ");
  EXPECT_EQ(client.read().status, 408U);
  EXPECT_EQ(running.get("/health").status, 200U);
}

TEST(Dawdling, ABodyThatNeverEnds) {
  ServerConfig config;
  config.limits.body_timeout = milliseconds(200);
  const RunningServer running({}, config);
  Client client(running.port());
  client.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{");
  EXPECT_EQ(client.read().status, 408U);
}

TEST(Dawdling, AnIdleConnectionIsClosed) {
  ServerConfig config;
  config.limits.idle_timeout = milliseconds(100);
  const RunningServer running({}, config);
  Client client(running.port());
  client.send_request("GET", "/health");
  EXPECT_EQ(client.read().status, 200U);
  EXPECT_EQ(client.read_some(), "");
}

TEST(Dawdling, AStreamThatIsNotReadIsAborted) {
  ServerConfig config;
  FakeEngineConfig long_context;
  long_context.max_model_len = 1 << 20;
  config.limits.max_unsent_bytes = 32 << 10;
  config.limits.write_timeout = milliseconds(1000);
  const RunningServer running(long_context, config);
  Client client(running.port());
  client.socket().set_option(boost::asio::socket_base::receive_buffer_size(4096));
  json request{{"prompt", "x"}, {"max_tokens", 1000000}, {"stream", true}, {"n", 64}, {"logprobs", 20}};
  client.send_request("POST", "/v1/completions", request.dump());
  EXPECT_TRUE(eventually([&] { return running.engine.aborted() == 1; }));
}

TEST(Dawdling, ASilentStreamIsPinged) {
  ServerConfig config;
  config.limits.ping_interval = milliseconds(50);
  const RunningServer running(slow(milliseconds(300), milliseconds(0)), config);
  const Reply reply = running.post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 1}, {"stream", true}});
  EXPECT_TRUE(reply.body.starts_with(": ping\n\n"));
  EXPECT_EQ(reply.events().back(), "[DONE]");
}

TEST(Flooding, BodyOverTheLimit) {
  const RunningServer running;
  const std::size_t limit = HttpLimits{}.max_body_bytes;
  Client client(running.port());
  client.send("POST /v1/completions HTTP/1.1\r\nContent-Length: " + std::to_string(limit + 1) + "\r\n\r\n" +
              std::string(limit + 1, 'x'));
  const Reply reply = client.read();
  EXPECT_EQ(reply.status, 413U);
  EXPECT_NE(message_of(reply).find(std::to_string(limit)), std::string::npos);
  EXPECT_EQ(running.get("/health").status, 200U);
}

TEST(Flooding, TenMegabytesAreReadAndJudged) {
  const RunningServer running;
  const std::string body = R"({"prompt":")" + std::string((10 << 20) - 100, 'x') + "\"}";
  const Reply reply = ask(running.port(), "POST", "/v1/completions", body);
  EXPECT_EQ(reply.status, 400U);
  EXPECT_EQ(code_of(reply), "context_length_exceeded");
}

TEST(Flooding, HeaderOverTheLimitAndNonsense) {
  const RunningServer running;
  EXPECT_EQ(running.get("/health", {{"X", std::string(100000, 'x')}}).status, 431U);
  Client client(running.port());
  client.send("\x16\x03\x01 this is not HTTP\r\n\r\n");
  EXPECT_EQ(client.read().status, 400U);
  EXPECT_EQ(running.get("/health").status, 200U);
}

TEST(Flooding, FiveHundredConnectionsAtOnce) {
  const RunningServer running(slow(milliseconds(5), milliseconds(1)));
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 500; ++i) {
    clients.push_back(std::make_unique<Client>(running.port()));
    clients.back()->send_request("POST", "/v1/completions",
                                 json{{"prompt", "x"}, {"max_tokens", 3}, {"stream", i % 2 == 0}}.dump());
  }
  int answered = 0;
  for (auto& client : clients) answered += client->read().status == 200 ? 1 : 0;
  EXPECT_EQ(answered, 500);
}

TEST(Flooding, MoreConnectionsThanAllowedAreTold) {
  ServerConfig config;
  config.limits.max_connections = 2;
  const RunningServer running({}, config);
  auto first = std::make_unique<Client>(running.port()), second = std::make_unique<Client>(running.port());
  for (Client* client : {first.get(), second.get()}) {
    client->send_request("GET", "/health");
    EXPECT_EQ(client->read().status, 200U);
  }
  Client third(running.port());
  EXPECT_EQ(third.read().status, 503U);
  first.reset();
  EXPECT_TRUE(eventually([&] { return running.get("/health").status == 200; }));
}

TEST(Pipelining, KeepAliveAndOrder) {
  const RunningServer running(slow(milliseconds(20), milliseconds(1)));
  Client client(running.port());
  client.send_request("POST", "/v1/completions", json{{"prompt", "x"}, {"max_tokens", 2}}.dump(),
                      {{"x-request-id", "one"}});
  client.send_request("GET", "/health", {}, {{"x-request-id", "two"}});
  client.send_request("POST", "/v1/completions", json{{"prompt", "x"}, {"max_tokens", 2}, {"stream", true}}.dump(),
                      {{"x-request-id", "three"}});
  client.send_request("GET", "/version", {}, {{"x-request-id", "four"}});
  for (const char* id : {"one", "two", "three", "four"}) {
    const Reply reply = client.read();
    EXPECT_EQ(reply.status, 200U);
    EXPECT_EQ(reply.field("x-request-id"), id);
  }
}

TEST(Pipelining, ByteByByte) {
  const RunningServer running;
  const std::string body = R"({"prompt":"x","max_tokens":1})";
  Client client(running.port());
  for (const char byte :
       "POST /v1/completions HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body) {
    client.send({&byte, 1});
  }
  EXPECT_EQ(client.read().status, 200U);
}

TEST(Pipelining, ChunkedBodyContinueAndOldHttp) {
  const RunningServer running;
  Client chunked(running.port());
  chunked.send(
      "POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"prompt\r\n6\r\n\":\"x\"}\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.read().status, 200U);
  Client expecting(running.port());
  expecting.send("POST /tokenize HTTP/1.1\r\nContent-Length: 14\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_TRUE(expecting.read_some().starts_with("HTTP/1.1 100"));
  expecting.send(R"({"prompt":"x"})");
  EXPECT_EQ(expecting.read().status, 200U);
  Client old(running.port());
  const std::string body = R"({"prompt":"x","max_tokens":1,"stream":true})";
  old.send("POST /v1/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  const Reply reply = old.read();
  EXPECT_EQ(reply.field("Transfer-Encoding"), "");
  EXPECT_EQ(reply.events().back(), "[DONE]");
}

TEST(Draining, FinishesWhatRunsAndRefusesTheRest) {
  const RunningServer running(slow(milliseconds(0), milliseconds(30)));
  Client client(running.port());
  client.send_request("POST", "/v1/completions", json{{"prompt", "x"}, {"max_tokens", 10}}.dump());
  ASSERT_TRUE(eventually([&] { return running.engine.stats().running == 1; }));
  std::atomic<bool> finished{false};
  std::thread drain([&] { finished = running.server->drain(milliseconds(10000)); });
  ASSERT_TRUE(eventually([&] { return running.get("/ready").status == 503; }));
  EXPECT_EQ(running.get("/health").status, 200U);
  const Reply refused = running.post("/v1/completions", {{"prompt", "x"}});
  EXPECT_EQ(refused.status, 503U);
  EXPECT_EQ(refused.field("Connection"), "close");
  EXPECT_EQ(client.read().json()["usage"]["completion_tokens"], 10);
  drain.join();
  EXPECT_TRUE(finished);
}

TEST(Draining, TheTimeoutEndsAnswersHonestly) {
  const RunningServer running(slow(milliseconds(0), milliseconds(50)));
  Client whole(running.port()), stream(running.port());
  whole.send_request("POST", "/v1/completions", kLong.dump());
  json request = kLong;
  request["stream"] = true;
  stream.send_request("POST", "/v1/completions", request.dump());
  ASSERT_TRUE(eventually([&] { return running.engine.stats().running == 2; }));
  EXPECT_FALSE(running.server->drain(milliseconds(100)));
  EXPECT_EQ(whole.read().status, 503U);
  const auto events = stream.read().events();
  ASSERT_GE(events.size(), 2U);
  EXPECT_NE(events[events.size() - 2].find("shutting down"), std::string::npos);
}

TEST(Draining, StopWithRequestsAtWorkReturns) {
  std::vector<std::unique_ptr<Client>> clients;
  {
    const RunningServer running(slow(milliseconds(0), milliseconds(50)));
    for (int i = 0; i < 10; ++i) {
      clients.push_back(std::make_unique<Client>(running.port()));
      clients.back()->send_request("POST", "/v1/completions", kLong.dump());
    }
    ASSERT_TRUE(eventually([&] { return running.engine.stats().running == 10; }));
  }
  EXPECT_EQ(clients.front()->read().status, 0U);
}

}  // namespace
}  // namespace octavo

// Models, tokens, health, metrics.
#include "running_server.h"

namespace octavo {
namespace {

TEST(Endpoints, Models) {
  const RunningServer running;
  const json list = running.get("/v1/models").json();
  EXPECT_EQ(list["object"], "list");
  ASSERT_EQ(list["data"].size(), 1U);
  EXPECT_EQ(list["data"][0]["id"], "fake");
  EXPECT_EQ(list["data"][0]["max_model_len"], 4096);
  EXPECT_EQ(running.get("/v1/models/fake").json()["object"], "model");
}

TEST(Endpoints, TokenizeInBothShapes) {
  FakeEngineConfig config;
  config.chat_template = kChatTemplate;
  const RunningServer running(config);
  json body = running.post("/tokenize", {{"prompt", "ab"}}).json();
  EXPECT_EQ(body["tokens"], (json{256, 97, 98}));
  EXPECT_EQ(body["count"], 3);
  EXPECT_EQ(body["max_model_len"], 4096);
  body =
      running.post("/tokenize", {{"prompt", "ab"}, {"add_special_tokens", false}, {"return_token_strs", true}}).json();
  EXPECT_EQ(body["tokens"], (json{97, 98}));
  EXPECT_EQ(body["token_strs"], (json{"a", "b"}));
  body = running.post("/tokenize", {{"content", "ab"}}).json();
  EXPECT_EQ(body, (json{{"tokens", {97, 98}}}));
  body = running.post("/tokenize", {{"content", "\xC3\xA9"}, {"with_pieces", true}}).json();
  EXPECT_EQ(body["tokens"][0], (json{{"id", 0xC3}, {"piece", {0xC3}}}));
  body = running.post("/tokenize", {{"messages", json::array({{{"role", "user"}, {"content", "x"}}})}}).json();
  EXPECT_EQ(body["count"], 21);  // "<s><user>x<assistant>" in bytes
  EXPECT_EQ(running.post("/tokenize", json::object()).status, 400U);
  EXPECT_EQ(running.post("/tokenize", {{"prompt", 3}}).status, 400U);
}

TEST(Endpoints, Detokenize) {
  const RunningServer running;
  const json body = running.post("/detokenize", {{"tokens", {72, 105}}}).json();
  EXPECT_EQ(body["prompt"], "Hi");
  EXPECT_EQ(body["content"], "Hi");
  EXPECT_EQ(running.post("/detokenize", {{"tokens", {0xC3}}}).json()["prompt"], "\xEF\xBF\xBD") << "always valid UTF-8";
  EXPECT_EQ(running.post("/detokenize", {{"tokens", {-1}}}).status, 400U);
  EXPECT_EQ(running.post("/detokenize", {{"tokens", "x"}}).status, 400U);
  EXPECT_EQ(running.post("/detokenize", json::object()).status, 400U);
}

TEST(Endpoints, TemplateAndTokenizerInfo) {
  FakeEngineConfig config;
  config.chat_template = kChatTemplate;
  const RunningServer running(config);
  const json messages = json::array({{{"role", "user"}, {"content", "x"}}});
  EXPECT_EQ(running.post("/apply-template", {{"messages", messages}}).json()["prompt"], "<s><user>x<assistant>");
  const json info = running.get("/tokenizer_info").json();
  EXPECT_EQ(info["bos_token"], "<s>");
  EXPECT_EQ(info["eos_token"], "</s>");
  EXPECT_EQ(info["chat_template"], kChatTemplate);
}

TEST(Endpoints, SmallOnes) {
  const RunningServer running;
  EXPECT_EQ(running.get("/health").status, 200U);
  EXPECT_EQ(running.get("/ping").status, 200U);
  EXPECT_EQ(running.get("/ready").status, 200U);
  EXPECT_EQ(running.get("/version").json()["version"], "1.2.3");
  EXPECT_EQ(running.get("/load").json()["server_load"], 0);
  EXPECT_EQ(running.get("/health?x=1").status, 200U);
}

TEST(Endpoints, ResetPrefixCache) {
  FakeEngineConfig config;
  config.token_delay = std::chrono::milliseconds(20);
  const RunningServer running(config);
  EXPECT_EQ(running.post("/reset_prefix_cache", json::object()).status, 200U);
  EXPECT_EQ(running.engine.resets(), 1U);
  EXPECT_EQ(running.get("/reset_prefix_cache").status, 405U);
  std::thread client([&] { (void)running.post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 50}}); });
  ASSERT_TRUE(eventually([&] { return running.engine.stats().running == 1; }));
  const Reply busy = running.post("/reset_prefix_cache", json::object());
  EXPECT_EQ(busy.status, 409U);
  EXPECT_EQ(code_of(busy), "busy");
  client.join();
  EXPECT_EQ(running.engine.resets(), 1U);
}

TEST(Endpoints, SaltDeadlineAndPriorityReachTheEngine) {
  FakeEngineConfig config;
  config.cached_tokens = 2;
  const RunningServer running(config);
  const Reply reply = running.post("/v1/completions", {{"prompt", "abcd"},
                                                       {"max_tokens", 1},
                                                       {"n", 2},
                                                       {"cache_salt", "tenant 7"},
                                                       {"deadline_ms", 60000},
                                                       {"priority", -3}});
  ASSERT_EQ(reply.status, 200U) << reply.body;
  EXPECT_EQ(reply.json()["usage"]["prompt_tokens_details"]["cached_tokens"], 2) << "once, not per choice";
  const Request seen = running.engine.seen().front();
  EXPECT_EQ(seen.cache_salt, "tenant 7");
  EXPECT_EQ(seen.deadline, std::chrono::milliseconds(60000));
  EXPECT_EQ(seen.priority, -3);
}

TEST(Endpoints, RequestIds) {
  const RunningServer running;
  EXPECT_EQ(running.get("/health", {{"x-request-id", "mine-7"}}).field("x-request-id"), "mine-7");
  EXPECT_TRUE(running.get("/health").field("x-request-id").starts_with("req-"));
  EXPECT_TRUE(
      running.get("/health", {{"x-request-id", std::string(500, 'a')}}).field("x-request-id").starts_with("req-"));
}

TEST(Endpoints, Metrics) {
  const RunningServer running;
  ASSERT_EQ(running.post("/v1/completions", {{"prompt", "abc"}, {"max_tokens", 3}}).status, 200U);
  ASSERT_TRUE(
      eventually([&] { return running.engine.stats().running == 0; }));  // the fake forgets after it has answered
  const Reply reply = running.get("/metrics");
  EXPECT_TRUE(reply.field("Content-Type").starts_with("text/plain"));
  const std::string labels = R"({engine="0",model_name="fake"})";
  for (
      const std::string& line : {
          "vllm:num_requests_running" + labels + " 0",
          "vllm:num_requests_waiting" + labels + " 0",
          "vllm:kv_cache_usage_perc" + labels + " 0",
          "vllm:generation_tokens_total" + labels + " 3",
          "vllm:time_to_first_token_seconds_count" + labels + " 1",
          "vllm:inter_token_latency_seconds_count" + labels + " 2",
          "vllm:e2e_request_latency_seconds_count" + labels + " 1",
          "vllm:request_prompt_tokens_sum" + labels + " 4",
          "vllm:request_generation_tokens_sum" + labels + " 3",
          std::string(R"(vllm:request_success_total{engine="0",model_name="fake",finished_reason="length"} 1)"),
          std::string(
              R"(vllm:cache_config_info{engine="0",model_name="fake",block_size="16",num_gpu_blocks="1024",cache_dtype="bf16"} 1)"),
          "vllm:request_prefill_kv_computed_tokens_sum" + labels + " 4",
          "vllm:gpu_prefix_cache_hits_total" + labels + " 0",
          "vllm:gpu_cache_usage_perc" + labels + " 0",
          std::string(R"(octavo:preemptions_total{engine="0",model_name="fake",kind="swap"} 0)"),
          std::string(R"(octavo:kv_blocks{engine="0",model_name="fake",state="free"} 1024)"),
          std::string(R"(octavo:memory_planned_bytes{engine="0",model_name="fake",tag="weights"} 1000)"),
          std::string(R"(octavo:memory_actual_bytes{engine="0",model_name="fake",tag="weights"} 900)"),
          std::string(R"(vllm:request_success_total{engine="0",model_name="fake",finished_reason="deadline"} 0)"),
          std::string(R"(http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 1)"),
      }) {
    EXPECT_NE(reply.body.find(line + "\n"), std::string::npos) << line << "\n" << reply.body;
  }
}

}  // namespace
}  // namespace octavo

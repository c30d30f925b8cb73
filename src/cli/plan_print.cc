// octavo plan: the answer as a table and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/binary_size.h"
#include "cli/format.h"
#include "cli/plan.h"

namespace octavo {
namespace {

void row(const char* name, const std::string& value) { fmt::print("{:<16}{}\n", name, value); }

std::string heads_of(const KvLayersPlan& kind) {
  if (kind.latent_dim != 0) return fmt::format("one vector of {}", kind.latent_dim);
  const char* name = kind.num_kv_heads == kind.num_heads ? "MHA" : kind.num_kv_heads == 1 ? "MQA" : "GQA";
  return fmt::format("{} {}/{} x {}", name, kind.num_heads, kind.num_kv_heads, kind.head_dim);
}

void print_kv(const PlanCase& what, const MemoryPlan& plan) {
  for (const KvLayersPlan& kind : plan.kv_layers) {
    row(&kind == plan.kv_layers.data() ? "KV per token" : "",
        fmt::format("{:>12} bytes   {} layers, {}, {}", grouped(kind.bytes_per_token), kind.layers, kind.kind,
                    heads_of(kind)));
  }
  row("", fmt::format("{:>12} bytes   all layers, {}{}", grouped(plan.bytes_per_token),
                      kv_type_name(what.question.engine.kv_type),
                      plan.charged_bytes_per_token == plan.bytes_per_token
                          ? std::string()
                          : fmt::format("; {} with padding", grouped(plan.charged_bytes_per_token))));
}

void print_memory(const MemoryPlan& plan) {
  fmt::print("\n");
  for (const MemoryTag& tag : plan.tags) {
    if (tag.bytes == 0) continue;
    row(tag.tag.c_str(),
        fmt::format("{:>12}   {}{}", binary_size(tag.bytes), tag.why, tag.when_needed ? " (up to, when needed)" : ""));
  }
  row("all", fmt::format("{:>12}   of {}", binary_size(plan.total_bytes), binary_size(plan.memory_bytes)));
}

void print_answer(const MemoryPlan& plan) {
  fmt::print("\n");
  row("KV room", fmt::format("{} blocks of {} tokens, {} tokens", grouped(plan.blocks_that_fit), plan.block_tokens,
                             grouped(plan.tokens_that_fit)));
  row("longest request", fmt::format("{} tokens{}{}", grouped(plan.longest_request),
                                     plan.longest_request_reason.empty() ? "" : ": ", plan.longest_request_reason));
  row("KV", fmt::format("{} for {} x {} tokens; {} in blocks", binary_size(plan.kv_bytes), plan.batch,
                        grouped(plan.length), binary_size(plan.kv_charged_bytes)));
  row("largest batch", fmt::format("{} of {} tokens", grouped(plan.max_batch), grouped(plan.length)));
  row("fits", plan.fits ? std::string("yes") : fmt::format("no: {}", plan.why_not));
  if (!plan.fits) row("what would", plan.nearest);
  for (const std::string& note : plan.notes) row("note", note);
}

Json kv_layers_json(const MemoryPlan& plan) {
  Json kinds = Json::array();
  for (const KvLayersPlan& kind : plan.kv_layers) {
    kinds.push_back({{"kind", kind.kind},
                     {"layers", kind.layers},
                     {"heads", kind.num_heads},
                     {"kv_heads", kind.num_kv_heads},
                     {"head_dim", kind.head_dim},
                     {"window", kind.window == 0 ? Json(nullptr) : Json(kind.window)},
                     {"latent_dim", kind.latent_dim == 0 ? Json(nullptr) : Json(kind.latent_dim)},
                     {"bytes_per_token", kind.bytes_per_token}});
  }
  return kinds;
}

Json tags_json(const MemoryPlan& plan) {
  Json tags = Json::array();
  for (const MemoryTag& tag : plan.tags) {
    tags.push_back({{"tag", tag.tag}, {"bytes", tag.bytes}, {"when_needed", tag.when_needed}, {"why", tag.why}});
  }
  return tags;
}

}  // namespace

void print_plan(const PlanCase& what, const MemoryPlan& plan) {
  const ModelShape& model = what.model;
  row("model",
      fmt::format("{} ({}), {} layers, {}", model.name, model.architecture, model.layers.size(), model.source));
  row("weights",
      model.weights_bytes == 0
          ? std::string("unknown")
          : fmt::format("{}, {} parameters{}", binary_size(model.weights_bytes), human_count(model.parameters),
                        model.weights_format.empty() ? "" : " as " + model.weights_format));
  print_kv(what, plan);
  print_memory(plan);
  print_answer(plan);
}

Json plan_json(const PlanCase& what, const MemoryPlan& plan) {
  const ModelShape& model = what.model;
  return {{"model", model.name},
          {"source", model.source},
          {"architecture", model.architecture},
          {"parameters", model.parameters},
          {"weights_format", model.weights_format.empty() ? Json(nullptr) : Json(model.weights_format)},
          {"weights_file_bytes", model.weights_bytes},
          {"unsupported", model.unsupported.empty() ? Json(nullptr) : Json(model.unsupported)},
          {"context_length", model.context_length},
          {"kv_type", kv_type_name(what.question.engine.kv_type)},
          {"kv_layers", kv_layers_json(plan)},
          {"bytes_per_token", plan.bytes_per_token},
          {"charged_bytes_per_token", plan.charged_bytes_per_token},
          {"block_tokens", plan.block_tokens},
          {"block_bytes", plan.page_bytes},
          {"groups", plan.num_groups},
          {"memory_bytes", plan.memory_bytes},
          {"weights_bytes", plan.weights_bytes},
          {"activations_bytes", plan.activations_bytes},
          {"pool_bytes", plan.pool_bytes},
          {"tags", tags_json(plan)},
          {"total_bytes", plan.total_bytes},
          {"rss_bytes", plan.rss_bytes},
          {"num_blocks", plan.num_blocks},
          {"blocks_that_fit", plan.blocks_that_fit},
          {"tokens_that_fit", plan.tokens_that_fit},
          {"longest_request", plan.longest_request},
          {"batch", plan.batch},
          {"length", plan.length},
          {"kv_bytes", plan.kv_bytes},
          {"kv_charged_bytes", plan.kv_charged_bytes},
          {"max_batch", plan.max_batch},
          {"fits", plan.fits},
          {"why_not", plan.why_not.empty() ? Json(nullptr) : Json(plan.why_not)},
          {"nearest", plan.nearest.empty() ? Json(nullptr) : Json(plan.nearest)},
          {"notes", plan.notes}};
}

}  // namespace octavo

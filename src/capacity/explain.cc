// The derivation of a memory plan with its numbers filled in. docs/capacity.md says the same in words.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "base/binary_size.h"
#include "kv/layout.h"
#include "octavo/planner.h"

namespace octavo {
namespace {

class Text {
 public:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void explain_token(const MemoryQuestion& question, const MemoryPlan& plan, Text& out) {
  const std::uint32_t element = kv_element_bytes(question.engine.kv_type);
  out.line("KV of one token");
  for (const KvLayersPlan& k : plan.kv_layers) {
    if (k.latent_dim != 0) {
      out.line("  latent layers: layers x latent elements x bytes = {} x {} x {} = {} bytes", k.layers, k.latent_dim,
               element, grouped(k.bytes_per_token));
      out.line("    one vector serves all {} heads, as keys and as values", k.num_heads);
      continue;
    }
    out.line("  {} layers: 2 (K and V) x layers x KV heads x head dimension x bytes = 2 x {} x {} x {} x {} = {} bytes",
             k.kind, k.layers, k.num_kv_heads, k.head_dim, element, grouped(k.bytes_per_token));
    if (k.num_kv_heads == k.num_heads) {
      out.line("    multi-head: each of the {} query heads has keys and values of its own", k.num_heads);
    } else {
      out.line("    grouped: {} query heads share {} KV heads; {} KV heads would take {:.0f} times as much",
               k.num_heads, k.num_kv_heads, k.num_heads, static_cast<double>(k.num_heads) / k.num_kv_heads);
    }
    if (k.window != 0) {
      out.line("    windowed: a query sees the last {} tokens, so no sequence keeps more, however long it gets",
               k.window);
    }
  }
  out.line("  all layers: {} bytes", grouped(plan.bytes_per_token));
  if (plan.charged_bytes_per_token != plan.bytes_per_token) {
    out.line("  charged: {} bytes, since all groups of layers draw pages of {} from one pool",
             grouped(plan.charged_bytes_per_token), binary_size(plan.page_bytes));
  }
}

void explain_point(const MemoryPlan& plan, Text& out) {
  out.line("KV of {} x {} tokens", plan.batch, grouped(plan.length));
  for (const KvLayersPlan& k : plan.kv_layers) {
    const std::uint32_t kept = k.window == 0 ? plan.length : std::min(plan.length, k.window);
    out.line("  {}: batch x tokens kept x bytes per token = {} x {} x {} = {}", k.kind, plan.batch, grouped(kept),
             grouped(k.bytes_per_token), binary_size(k.bytes_per_token * kept * plan.batch));
  }
  out.line("  together: {} ({} bytes)", binary_size(plan.kv_bytes), grouped(plan.kv_bytes));
  out.line("  in blocks of {} tokens: {}; paging leaves at most a block a sequence empty, and what is kept is the same",
           plan.block_tokens, binary_size(plan.kv_charged_bytes));
  out.line(
      "  twice the batch or, within windows, twice the length is twice the KV: fewer KV heads and smaller elements");
  out.line("  lower the factor, and no more than the factor");
}

void explain_batch(const MemoryQuestion& question, const MemoryPlan& plan, Text& out) {
  out.line("What fits in {}", binary_size(plan.memory_bytes));
  std::uint64_t rest = 0;
  for (const MemoryTag& tag : plan.tags) {
    if (tag.tag == "kv pool" || tag.tag == "swap" || tag.bytes == 0) continue;
    out.line("  - {:<16}{:>14}   {}", tag.tag, binary_size(tag.bytes), tag.why);
    rest += tag.bytes;
  }
  const std::uint64_t left = plan.memory_bytes - std::min(plan.memory_bytes, rest);
  out.line("  = {} are left", binary_size(left));
  if (question.engine.kv_bytes) {
    out.line("  the KV pool: {} by --kv-bytes", binary_size(*question.engine.kv_bytes));
  } else if (question.engine.kv_fraction < 1) {
    out.line("  the KV pool: a share of {} of that, by --kv-fraction", question.engine.kv_fraction);
  }
  const std::uint64_t each = plan.kv_charged_bytes / plan.batch;
  out.line(
      "  largest batch = (memory - weights - activations - the rest) / KV of a request = {} of {} tokens at {} each",
      grouped(plan.max_batch), grouped(plan.length), binary_size(each));
  out.line("  asked: {}: {}", plan.batch, plan.fits ? std::string("fits") : plan.why_not);
  if (!plan.fits) out.line("  what would fit: {}", plan.nearest);
  for (const std::string& note : plan.notes) out.line("  note: {}", note);
}

}  // namespace

std::string explain(const ModelShape& model, const MemoryQuestion& question, const MemoryPlan& plan) {
  Text out;
  out.line("{} ({}): {} layers, width {}, vocabulary {}, context {}", model.name, model.architecture,
           model.layers.size(), model.width, grouped(model.vocab_size), grouped(model.context_length));
  out.line("");
  explain_token(question, plan, out);
  out.line("");
  explain_point(plan, out);
  out.line("");
  explain_batch(question, plan, out);
  return out.take();
}

}  // namespace octavo

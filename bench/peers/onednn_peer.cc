// oneDNN's matmul with weights in the layout it likes best, reordered once and outside the timing.
#include <cstdlib>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>

#include "protocol.h"

namespace {

using dnnl::memory;

struct Matmul {  // y [rows, columns] = x [rows, depth] · w [depth, columns]
  Matmul(const dnnl::engine& engine, long rows, long columns, long depth, const std::string& folder)
      : stream(engine),
        x(peer::read_floats(folder + "/x.f32", static_cast<std::size_t>(rows * depth))),
        w(peer::read_floats(folder + "/w.f32", static_cast<std::size_t>(depth * columns))),
        y(static_cast<std::size_t>(rows * columns)) {
    const auto plain = [](long a, long b) {
      return memory::desc({a, b}, memory::data_type::f32, memory::format_tag::ab);
    };
    const memory::desc packed({depth, columns}, memory::data_type::f32, memory::format_tag::any);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc description({plain(rows, depth), packed, plain(rows, columns)}, attributes,
                                                   engine);
    memory given(plain(depth, columns), engine, w.data());
    memory weights(description.weights_desc(), engine);
    dnnl::reorder(given, weights).execute(stream, given, weights);
    stream.wait();
    primitive = dnnl::matmul(description);
    arguments = {{DNNL_ARG_SRC, memory(plain(rows, depth), engine, x.data())},
                 {DNNL_ARG_WEIGHTS, weights},
                 {DNNL_ARG_DST, memory(plain(rows, columns), engine, y.data())},
                 {DNNL_ARG_SCRATCHPAD, memory(description.scratchpad_desc(), engine)}};
  }
  void run() {
    primitive.execute(stream, arguments);
    stream.wait();
  }

  dnnl::stream stream;
  regard::Floats x, w, y;
  dnnl::matmul primitive;
  std::unordered_map<int, memory> arguments;
};

}  // namespace

int main() {
  // Virtual machines that announce AMX without its tile tables make oneDNN 2.6.3 die of an illegal instruction.
  dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return peer::serve([&](const std::string& json, const std::string& folder) {
    if (json.find("\"operation\": \"matmul\"") == std::string::npos) throw std::runtime_error("only matmul");
    auto matmul = std::make_shared<Matmul>(engine, peer::number(json, "rows"), peer::number(json, "columns"),
                                           peer::number(json, "depth"), folder);
    return peer::Job{.run = [matmul] { matmul->run(); },
                     .output = [matmul]() -> const regard::Floats& { return matmul->y; }};
  });
}

// `regard view`: pictures of attention, from a trace or directly from a model.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "io/file.h"
#include "tasks/box.h"
#include "tasks/traces.h"
#include "view/show.h"

namespace regard::cli {
namespace {

struct Options {
  std::vector<std::string> words;
  std::string model, out, view, theme = "light", with, links, color = "auto";
  ShowSettings show;
};

// "0-0 1-2": source-target, as `regard align` writes them, are columns and rows of a cross map.
std::vector<std::pair<std::int64_t, std::int64_t>> links_of(const std::string& text) {
  std::vector<std::pair<std::int64_t, std::int64_t>> links;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string link = text.substr(at, end - at);
    at = end + 1;
    if (link.empty()) continue;
    const std::size_t dash = link.find('-');
    const auto number = [](const std::string& digits) {
      return !digits.empty() && digits.size() < 10 && digits.find_first_not_of("0123456789") == std::string::npos;
    };
    check(dash != std::string::npos && number(link.substr(0, dash)) && number(link.substr(dash + 1)), "view: --links '",
          link, "', expected pairs of numbers like 0-0 1-2");
    links.emplace_back(std::stoll(link.substr(dash + 1)), std::stoll(link.substr(0, dash)));
  }
  return links;
}

// A trace is a file; anything else is a text for a model. Two are a text and its translation.
bool is_trace(const Options& options) {
  if (options.words.size() == 2 || !options.model.empty()) return false;
  const std::string& what = options.words[0];
  return what.ends_with(".trace") || what.ends_with(".safetensors") || exists(disk(), what);
}

Trace look(const Options& options, const Context& context) {
  const std::string& line = options.words[0];
  for (const std::string& words : options.words) {
    check(utf8::valid(words) && words.find('\0') == std::string::npos, "view: the text is no UTF-8");
  }
  const Translator translator(options.model.empty() ? boxed_model(direction_of(line)) : options.model);
  Translator::Result result;
  if (options.words.size() == 2) {
    const TextPair pair{line, options.words[1]};
    result = translator.force(std::span(&pair, 1), {}, context).at(0);
  } else {
    result = translator.translate(std::span(&line, 1), {.keeps = Keeps::kEverything}, context).at(0).best.at(0);
  }
  TraceCollector collector({.erasure = true});
  const std::string title = line + " → " + result.text;
  collector.add(translator, std::span(&line, 1), std::span(&result, 1), std::span(&title, 1), {}, context);
  if (collector.left_out() > 0) {
    fail(ErrorKind::kLimit, "view: a translation of ", result.tokens.size(), " tokens has too many weights, expected ",
         TraceCollector::kMostBytes >> 20, " MB at most: take a shorter text");
  }
  return collector.trace();
}

int run(Options& options, const Context& context) {
  ShowSettings& show_settings = options.show;
  const ShowFormat format = options.out.empty() ? ShowFormat::kTerminal : format_of_ending(options.out);
  if (options.view.empty()) options.view = options.with.empty() ? "matrix" : "difference";
  show_settings.view = view_of(options.view);
  check(options.with.empty() || show_settings.view == View::kDifference, "view: --with is for --view difference, not ",
        options.view);
  check(!options.with.empty() || show_settings.view != View::kDifference,
        "view: --view difference needs the other trace: --with OTHER.trace");
  const View view = show_settings.view;
  check(show_settings.token.empty() || view == View::kRow || view == View::kText || view == View::kImage,
        "view: --token is for --view row, text and image, not ", options.view);
  const bool picture = format == ShowFormat::kSvg || format == ShowFormat::kPng || format == ShowFormat::kPdf;
  check(options.links.empty() || (view == View::kMatrix && picture),
        "view: --links are marked in pictures of --view matrix: -o FILE.svg, .png or .pdf");
  show_settings.theme = options.theme == "dark" ? Theme::kDark : Theme::kLight;
  show_settings.links = links_of(options.links);
  show_settings.terminal = {
      .colors = colors_of(STDOUT_FILENO, when_colors(options.color)), .width = width_of(STDOUT_FILENO), .half = true};

  const Trace trace = is_trace(options) ? Trace::read(options.words[0]) : look(options, context);
  Trace other;
  if (!options.with.empty()) {
    other = Trace::read(options.with);
    show_settings.other = &other;
  }
  const std::string bytes = show(trace, show_settings, format);
  if (options.out.empty()) {
    fmt::print("{}", bytes);
  } else {
    replace_file(disk(), options.out, [&](FileWriter& out) { out.write(bytes); });
  }
  return 0;
}

const AddCommand view({
    .name = "view",
    .summary = "show where a model looked: in the terminal, as a picture or as a page",
    .example = "regard view '他们在看书。' -o map.html\n"
               "regard view -m zh-en.model '他们在看书。' 'They are reading.' --view lines -o lines.svg\n"
               "regard view a.trace --view heads -o heads.svg\n"
               "regard view a.trace --view row --token it -o it.png",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      ShowSettings& show_settings = options->show;
      MapChoice& choice = show_settings.choice;
      app.add_option("what", options->words,
                     "a trace, as regard translate --trace writes it; or a text, and a translation of it if another\n"
                     "than the model's is to be shown")
          ->required()
          ->expected(1, 2)
          ->option_text("TRACE | SOURCE [TARGET]");
      app.add_option("-m,--model", options->model, "of a text: which model (the one in the box for its language)")
          ->option_text("MODEL");
      app.add_option("-o,--out", options->out, "a file: .svg .png .pdf .html .txt .json .npy; none: the terminal")
          ->option_text("FILE");
      app.add_option("--view", options->view,
                     "matrix, lines, heads, row, image, sound, text, entropy or difference (matrix)")
          ->option_text("NAME");
      app.add_option("--map", choice.map, "which map: cross, encoder, decoder … (what the trace says, else its first)")
          ->option_text("NAME");
      app.add_option("--layer", choice.layer, "which layer, from 0 (what the trace says, else the last)")
          ->check(Range(0, 100000))
          ->option_text("N");
      app.add_option("--head", choice.head, "which head, from 0 (what the trace says, else the mean of all)")
          ->check(Range(0, 100000))
          ->option_text("N");
      app.add_option("--item", choice.item, "which example of the trace, from 0 (0)")
          ->check(Range(0, 1 << 30))
          ->option_text("N");
      app.add_option("--token", show_settings.token, "for row, text and image: whose row, by its word or its number")
          ->option_text("WORD");
      app.add_flag("--words", choice.words, "pieces of a word together");
      app.add_flag("--rollout", choice.rollout, "follow the weights through the layers (attention rollout)");
      app.add_flag("--norms", choice.norms, "weigh each place by the length of the value that was read there");
      app.add_option("--with", options->with, "another trace, whose map is taken away from this one's")
          ->option_text("TRACE");
      app.add_option("--links", options->links, "cells to be marked, as pairs column-row: '0-0 1-2'")
          ->option_text("LINKS");
      app.add_option("--theme", options->theme, "of pictures: light or dark (light)")
          ->check(IsMember({"light", "dark"}))
          ->option_text("NAME");
      app.add_option("--color", options->color, "in the terminal: auto, always or never (auto)")
          ->check(IsMember({"auto", "always", "never"}))
          ->option_text("WHEN");
      return [options](const Context& context) { return run(*options, context); };
    },
});

}  // namespace
}  // namespace regard::cli

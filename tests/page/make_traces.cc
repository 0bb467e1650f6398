// Writes the traces that tests/page/view_test.py opens: make_traces FOLDER
#include "support/traces.h"

int main(int count, char** arguments) {
  using namespace regard;
  if (count != 2) return 2;
  const std::string folder = std::string(arguments[1]) + "/";
  const auto write = [&](const char* name, const TraceItem& item) {
    Trace trace;
    trace.items = {item};
    trace.write(folder + name + ".trace");
  };
  write("sentence", sentence_item());
  write("picture", picture_item());
  write("sound", sound_item());
  write("hebrew", hebrew_item());
  TraceItem hostile = sentence_item();
  hostile.title = "</script><script>alert(1)</script><img src=x onerror=alert(2)>";
  hostile.axes[0].tokens[1].text = "</script><b>";
  write("hostile", hostile);
  TraceItem longer = sentence_item();
  std::vector<std::string> words;
  for (int i = 0; i < 1200; ++i) words.push_back("w" + std::to_string(i));
  longer.axes = {words_axis("text", words)};
  longer.maps = {{.name = "self", .rows = "text", .columns = "text", .weights = diagonal_weights(1, 1, 1200, 1200)}};
  write("long", longer);
  return 0;
}

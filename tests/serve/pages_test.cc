#include "serve/pages.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "serve/page_files.h"
#include "support/paths.h"

namespace regard::serve {
namespace {

TEST(Pages, AreTheFilesOfTheirFolder) {
  std::size_t files = 0;
  for (const auto& each : std::filesystem::directory_iterator(source_path("/src/serve/page"))) {
    const std::string name = each.path().filename(), ending = each.path().extension();
    if (ending != ".html" && ending != ".css" && ending != ".js") continue;
    ++files;
    const Page* page = find_page(name == "index.html" ? "/" : "/" + name);
    ASSERT_NE(page, nullptr) << name;
    std::ostringstream content;
    content << std::ifstream(each.path()).rdbuf();
    EXPECT_EQ(page->body, content.str()) << name;
    const std::string type = ending == ".html" ? "text/html" : ending == ".css" ? "text/css" : "text/javascript";
    EXPECT_EQ(page->type, type + "; charset=utf-8") << name;
  }
  EXPECT_GT(files, 10U);
  EXPECT_EQ(page_files().size(), files);
}

TEST(Pages, NameOnlyWhatIsThere) {
  const std::regex named("(?:from \"\\.|(?:src|href)=\")(/[^\"]*)\"");
  std::size_t names = 0;
  for (const Page& page : page_files()) {
    const std::string body(page.body);
    for (std::sregex_iterator at(body.begin(), body.end(), named), end; at != end; ++at) {
      EXPECT_NE(find_page((*at)[1].str()), nullptr) << page.path << " names " << (*at)[1];
      ++names;
    }
  }
  EXPECT_GT(names, 20U);
}

// The policy forbids scripts and styles within the markup; a browser would leave them out without a word.
TEST(Pages, HaveNoScriptAndNoStyleWithinTheMarkup) {
  const std::string body(find_page("/")->body);
  EXPECT_FALSE(std::regex_search(body, std::regex("<style|<script>|\\sstyle=|\\son[a-z]+=")));
}

TEST(Pages, OthersAreNotThere) {
  for (const char* path :
       {"", "/x", "/index.html", "//", "/../pages.cc", "/app.js/", "/files.cc.in", "/jsconfig.json"}) {
    EXPECT_EQ(find_page(path), nullptr) << path;
  }
}

}  // namespace
}  // namespace regard::serve

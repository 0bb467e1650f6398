// Options that name pairs of lines: two files, a table or JSON lines, and which of their columns or fields.
#pragma once

#include <string>
#include <vector>

#include "base/check.h"
#include "cli/app.h"
#include "data/lines.h"

namespace regard::cli {

struct PairOptions {
  std::vector<std::string> columns, fields;

  void add(App& app) {
    app.add_option("--columns", columns, "of a table: those of source and target (1,2)")
        ->delimiter(',')
        ->option_text("N,N");
    app.add_option("--fields", fields, "of JSON lines: those of source and target (source,target)")
        ->delimiter(',')
        ->option_text("NAME,NAME");
  }

  void check_unused(const char* command) const {
    check(columns.empty() && fields.empty(), command, ": --", columns.empty() ? "fields" : "columns",
          " is for files, not for the built-in corpus");
  }

  // `names`: one or two files; `command` and `option` are for errors.
  PairFiles files(const std::vector<std::string>& names, const char* command, const char* option) const {
    PairFiles files{.source = names[0]};
    if (names.size() == 2) files.target = names[1];
    if (!columns.empty()) {
      check(columns.size() == 2 && names.size() == 1, command, ": --columns are for one file after ", option,
            ", and two of them");
      files.format = PairFormat::kTable;
      std::int64_t* const to[] = {&files.source_column, &files.target_column};
      for (std::size_t i = 0; i < 2; ++i) {
        const std::string& number = columns[i];
        check(!number.empty() && number.size() < 6 && number.find_first_not_of("0123456789") == std::string::npos &&
                  number != "0",
              command, ": --columns ", number, ", expected numbers from 1");
        *to[i] = std::stoll(number);
      }
    }
    if (!fields.empty()) {
      check(fields.size() == 2 && names.size() == 1, command, ": --fields are for one file after ", option,
            ", and two of them");
      files.format = PairFormat::kJson;
      files.source_field = fields[0];
      files.target_field = fields[1];
    }
    return files;
  }
};

}  // namespace regard::cli

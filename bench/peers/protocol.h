// The peers' side of the line protocol that src/cli/bench.h describes: reads commands, times calls, answers.
#pragma once

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "base/aligned.h"

namespace peer {

struct Job {
  std::function<void()> run;
  std::function<const regard::Floats&()> output;
};

// The value of a whole-number member of a line of JSON without nesting.
inline long number(const std::string& json, const std::string& name) {
  const std::size_t at = json.find('"' + name + "\":");
  if (at == std::string::npos) throw std::runtime_error("no " + name + " in " + json);
  return std::stol(json.substr(at + name.size() + 3));
}

inline regard::Floats read_floats(const std::string& path, std::size_t count) {
  regard::Floats values(count);
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(count * sizeof(float))))
    throw std::runtime_error("cannot read " + path);
  return values;
}

// make(JSON of the case, folder of the inputs) prepares a job.
inline int serve(const std::function<Job(const std::string&, const std::string&)>& make) {
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  std::string description;
  Job job;
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    std::istringstream words(line);
    std::string command, name, path;
    words >> command;
    try {
      if (command == "case") {
        std::getline(words, description);
      } else if (command == "prepare" && words >> name >> path) {
        job = {};
        job = make(description, path);
      } else if (command == "run") {
        int samples = 0, calls = 0;
        words >> name >> samples >> calls;
        const double start = now();
        do {
          job.run();
        } while (now() - start < 3e-4);
        for (int sample = 0; sample < samples; ++sample) {
          const double before = now();
          for (int call = 0; call < calls; ++call) job.run();
          std::printf("%.9g ", (now() - before) / calls);
        }
        std::printf("\n");
      } else if (command == "output" && words >> name >> path) {
        const regard::Floats& values = job.output();
        std::ofstream file(path, std::ios::binary);
        file.write(reinterpret_cast<const char*>(values.data()),
                   static_cast<std::streamsize>(values.size() * sizeof(float)));
        if (!file.flush()) throw std::runtime_error("cannot write " + path);
      } else {
        throw std::runtime_error("cannot make sense of '" + line + "'");
      }
      std::printf("ok\n");
    } catch (const std::exception& error) {
      std::printf("error %s\n", error.what());
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace peer

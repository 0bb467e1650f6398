// The server over real sockets: good clients, hostile ones, too many of them, and its end. Nothing here waits for time
// to pass: clients read until the server answers or closes, and what has to be under way says so.
#include "serve/http.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <latch>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "base/check.h"
#include "io/json.h"
#include "serve/service.h"
#include "support/cases.h"
#include "support/error_of.h"
#include "support/http_client.h"
#include "tiny_models.h"

namespace regard::serve {
namespace {

using std::string_literals::operator""s;

// A server in a thread of its own.
class Running {
 public:
  Running(HttpServer::Handler handler, const Limits& limits = {})
      : server_({.port = 0, .limits = limits}, std::move(handler)), port_(server_.port()) {
    thread_ = std::thread([this] { answered_ = server_.run(stop_.get_token()); });
  }
  ~Running() {
    if (thread_.joinable()) stop();
  }
  int port() const { return port_; }
  void ask_to_stop() { stop_.request_stop(); }
  bool stop() {
    stop_.request_stop();
    thread_.join();
    return answered_;
  }
  std::int64_t connections() const { return server_.connections(); }

 private:
  std::stop_source stop_;
  HttpServer server_;
  int port_;
  bool answered_ = false;
  std::thread thread_;
};

void echo(const HttpRequest& request, const std::shared_ptr<Reply>& reply) {
  reply->send({.body = request.method + " " + request.path + " " + request.body});
}

constexpr std::string_view kGet = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";

class HttpTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HttpServer::available()) GTEST_SKIP() << "built without Boost";
  }
};

TEST_F(HttpTest, AnswersOneRequestAfterAnother) {
  const Running server(echo);
  Client client(server.port());
  for (int i = 0; i < 3; ++i) {
    const std::string answer = client.ask(post("/a?b=c", text("body ", i)));
    EXPECT_EQ(status_of(answer), 200);
    EXPECT_EQ(body_of(answer), text("POST /a body ", i));
  }
  client.send(std::string(kGet) + std::string(kGet));  // two at once
  EXPECT_EQ(body_of(client.read_answer()), "GET /health ");
  EXPECT_EQ(body_of(client.read_answer()), "GET /health ");
  const std::string chunked =
      client.ask("POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(body_of(chunked), "POST /a abcde");
}

TEST_F(HttpTest, AnswersSayWhatBrowsersMayNotDo) {
  const Running server(echo);
  Client client(server.port());
  const std::string answer = client.ask(kGet);
  for (const char* header : {"Content-Security-Policy: default-src 'none'", "X-Content-Type-Options: nosniff",
                             "Referrer-Policy: no-referrer", "X-Frame-Options: DENY", "X-Request-Id: "}) {
    EXPECT_NE(answer.find(header), std::string::npos) << answer;
  }
  EXPECT_EQ(answer.find("Access-Control"), std::string::npos);
}

TEST_F(HttpTest, HeadHasNoBodyAndExpectIsAnswered) {
  const Running server(echo);
  {
    Client client(server.port());
    client.send("HEAD /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    const std::string answer = client.read_all();
    EXPECT_EQ(status_of(answer), 200);
    EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
  }
  Client client(server.port());
  client.send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(status_of(client.read_answer()), 100);
  EXPECT_EQ(body_of(client.ask("ab")), "POST /a ab");
}

TEST_F(HttpTest, WhatIsMalformedIsRefusedAndNeverReachesTheHandler) {
  std::atomic<int> handled = 0;
  Limits limits;
  limits.header = 1024;
  limits.body = 1000;
  const Running server(
      [&](const HttpRequest& request, const std::shared_ptr<Reply>& reply) {
        ++handled;
        echo(request, reply);
      },
      limits);
  const std::string big(5000, 'a');
  struct Case {
    std::string bytes;
    int status;
  };
  const Case all[] = {
      {"GET /a HTTP/1.1\r\nX: " + big + "\r\n\r\n", 431},
      {"GET /" + big + " HTTP/1.1\r\n\r\n", 431},
      {"GET /a HTTP/1.1\r\n" +
           [] {
             std::string many;
             for (int i = 0; i < 300; ++i) many += text("X", i, ": a\r\n");
             return many;
           }() +
           "\r\n",
       431},
      {post("/a", big), 413},
      {"POST /a HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n", 413},
      {"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n" + big, 413},
      {"POST /a HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400},
      {"POST /a HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400},
      {"POST /a HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400},
      {"POST /a HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST /a HTTP/1.1\r\nContent-Length: 1e3\r\n\r\n", 400},
      {"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\nab\r\n0\r\n\r\n", 400},
      {"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n", 400},
      {"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nab", 400},
      {"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabXX0\r\n\r\n", 400},
      {"GET /a\0b HTTP/1.1\r\n\r\n"s, 400},
      {"GET  HTTP/1.1\r\n\r\n", 400},
      {"GET /a HTTP/9.9\r\n\r\n", 400},
      {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s + std::string(100, '\x01'), 400},
      {"GET /a HTTP/1.1\r\nBad Header: 1\r\n\r\n", 400},
      {"GET /a HTTP/1.1\r\nX\0: 1\r\n\r\n"s, 400},
  };
  for (const Case& each : all) {
    Client client(server.port());
    client.send(each.bytes);
    const std::string answer = client.read_all();  // it closes
    EXPECT_EQ(status_of(answer), each.status) << each.bytes.substr(0, 100) << "\n" << answer;
    if (status_of(answer) == each.status) {
      EXPECT_TRUE(Json::parse(body_of(answer), "the answer").find("error")) << answer;
    }
  }
  EXPECT_EQ(handled, 0);
  Client client(server.port());
  EXPECT_EQ(status_of(client.ask(kGet)), 200);
}

TEST_F(HttpTest, RandomBytesNeverEndIt) {
  const Running server(echo);
  std::mt19937 random(11);
  const std::string good = post("/translate", R"({"q": "a"})");
  for (int i = 0; i < cases(150); ++i) {
    std::string bytes = good;
    for (auto k = random() % 4; k < 4; ++k) bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
    bytes.resize(random() % 3 == 0 ? random() % bytes.size() : bytes.size());
    Client client(server.port());
    client.send(bytes);
  }
  Client client(server.port());
  EXPECT_EQ(status_of(client.ask(kGet)), 200);
}

TEST_F(HttpTest, SlowClientsAreCutOffAndHarmNobody) {
  Limits limits;
  limits.read_seconds = 0.2;
  limits.idle_seconds = 0.2;
  const Running server(echo, limits);
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < cases(40); ++i) {
    slow.push_back(std::make_unique<Client>(server.port()));
    if (i % 2 == 0) slow.back()->send("GET / HTT");
    if (i % 4 == 1) slow.back()->send("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc");
  }
  const auto is_served = [&] { return status_of(Client(server.port()).ask(kGet)) == 200; };
  EXPECT_TRUE(is_served() || is_served() || is_served());   // on a busy machine it may be slow itself
  for (auto& each : slow) EXPECT_EQ(each->read_all(), "");  // all are closed
}

TEST_F(HttpTest, AByteNowAndThenDoesNotMoveTheDeadline) {
  Limits limits;
  limits.read_seconds = 0.2;
  limits.header = 64 << 20;
  const Running server(echo, limits);
  Client client(server.port());
  while (client.send("G")) std::this_thread::yield();  // ends when the server has closed
  SUCCEED();
}

TEST_F(HttpTest, ConnectionsAndClientsAreBounded) {
  std::promise<void> entered;
  std::shared_ptr<Reply> held;
  std::mutex lock;
  Limits limits;
  limits.connections = 3;
  limits.per_client = 1;
  Running server(
      [&](const HttpRequest& request, const std::shared_ptr<Reply>& reply) {
        if (request.path != "/hold") return echo(request, reply);
        const std::lock_guard guard(lock);
        held = reply;
        entered.set_value();
      },
      limits);
  Client first(server.port());
  first.send("GET /hold HTTP/1.1\r\n\r\n");
  entered.get_future().wait();
  Client second(server.port());
  const std::string refused = second.ask(kGet);
  EXPECT_EQ(status_of(refused), 429);
  EXPECT_NE(refused.find("Retry-After: 1"), std::string::npos);
  Client third(server.port());
  EXPECT_EQ(status_of(third.ask(kGet)), 429);
  Client fourth(server.port());
  EXPECT_EQ(status_of(fourth.read_all()), 503);
  {
    const std::lock_guard guard(lock);
    held->send({.body = "now"});
    held.reset();
  }
  EXPECT_EQ(body_of(first.read_answer()), "now");
  EXPECT_EQ(status_of(second.ask(kGet)), 200);
}

TEST_F(HttpTest, WorkIsToldWhenItsClientLeaves) {
  std::promise<std::stop_token> entered;
  std::shared_ptr<Reply> held;
  Running server([&](const HttpRequest&, const std::shared_ptr<Reply>& reply) {
    held = reply;
    entered.set_value(reply->gone());
  });
  std::promise<void> left;
  std::stop_token gone;
  {
    Client client(server.port());
    client.send(kGet);
    gone = entered.get_future().get();
  }
  const std::stop_callback told(gone, [&] { left.set_value(); });
  left.get_future().wait();
  held->send({.body = "too late"});
  held.reset();
}

TEST_F(HttpTest, WhoseAnswerIsForgottenIsToldSo) {
  const Running server([](const HttpRequest&, const std::shared_ptr<Reply>&) {});
  Client client(server.port());
  EXPECT_EQ(status_of(client.ask(kGet)), 500);
  EXPECT_EQ(status_of(client.ask(kGet)), 500);
}

TEST_F(HttpTest, AHandlerThatThrowsHarmsNobody) {
  const Running server([](const HttpRequest& request, const std::shared_ptr<Reply>& reply) {
    if (request.path == "/throw") throw std::runtime_error("a secret");
    echo(request, reply);
  });
  Client client(server.port());
  const std::string answer = client.ask("GET /throw HTTP/1.1\r\n\r\n");
  EXPECT_EQ(status_of(answer), 500);
  EXPECT_EQ(answer.find("secret"), std::string::npos);
  EXPECT_EQ(status_of(client.ask(kGet)), 200);
}

TEST_F(HttpTest, AnAnswerThatIsTooLateIsNotTakenForTheNext) {
  Limits limits;
  limits.request_seconds = 0.05;
  std::array<std::promise<std::shared_ptr<Reply>>, 2> entered;
  std::size_t number = 0;
  Running server(
      [&](const HttpRequest& request, const std::shared_ptr<Reply>& reply) {
        EXPECT_EQ(request.path, "/late");
        entered.at(number++).set_value(reply);
      },
      limits);
  Client client(server.port());
  const std::string late = client.ask("GET /late HTTP/1.1\r\n\r\n");
  EXPECT_EQ(status_of(late), 503);
  EXPECT_NE(late.find("Retry-After"), std::string::npos);
  client.send("GET /late HTTP/1.1\r\n\r\n");
  const std::shared_ptr<Reply> second = entered[1].get_future().get();
  entered[0].get_future().get()->send({.body = "of the request before"});
  second->send({.body = "right"});
  const std::string answer = client.read_answer();  // late as well, on a busy machine
  EXPECT_TRUE(body_of(answer) == "right" || status_of(answer) == 503) << answer;
}

TEST_F(HttpTest, EventsArriveOneByOne) {
  std::promise<std::shared_ptr<Reply>> entered;
  Running server([&](const HttpRequest&, const std::shared_ptr<Reply>& reply) { entered.set_value(reply); });
  Client client(server.port());
  client.send(kGet);
  std::shared_ptr<Reply> reply = entered.get_future().get();
  reply->event("token", "1");
  EXPECT_NE(client.read_answer().find("text/event-stream"), std::string::npos);  // before the end is known
  reply->event("token", "2");
  reply->end();
  reply.reset();
  EXPECT_EQ(client.read_all(), "event: token\ndata: 1\n\nevent: token\ndata: 2\n\n");
}

TEST_F(HttpTest, EventsThatFailHalfWayEndWithTheError) {
  const Running server([&](const HttpRequest& request, const std::shared_ptr<Reply>& reply) {
    reply->event("token", "1");
    reply->send(error_answer(503, "not enough memory", request.id));
  });
  Client client(server.port());
  client.send(kGet);
  const std::string all = client.read_all();
  EXPECT_NE(all.find("event: token\ndata: 1\n\nevent: error\ndata: {\"error\":\"not enough memory\""),
            std::string::npos)
      << all;
}

TEST_F(HttpTest, StoppingAnswersWhatIsUnderWay) {
  std::mutex lock;
  std::vector<std::shared_ptr<Reply>> held;
  const std::size_t count = 20;
  std::promise<void> all;
  Running server([&](const HttpRequest&, const std::shared_ptr<Reply>& reply) {
    const std::lock_guard guard(lock);
    held.push_back(reply);
    if (held.size() == count) all.set_value();
  });
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<Client>(server.port()));
    clients.back()->send(kGet);
  }
  Client idle(server.port());
  all.get_future().wait();
  server.ask_to_stop();
  EXPECT_EQ(idle.read_all(), "");  // closed: it stops
  EXPECT_FALSE(Client(server.port()).connected());
  for (std::size_t i = 0; i < count; ++i) held[i]->send({.body = "done"});
  held.clear();
  for (auto& each : clients) {
    EXPECT_EQ(body_of(each->read_all()), "done");
    each.reset();
  }
  EXPECT_TRUE(server.stop());
}

TEST_F(HttpTest, StoppingDoesNotWaitForEver) {
  Limits limits;
  limits.drain_seconds = 0.05;
  std::promise<void> entered;
  std::shared_ptr<Reply> held;
  Running server(
      [&](const HttpRequest&, const std::shared_ptr<Reply>& reply) {
        held = reply;
        entered.set_value();
      },
      limits);
  Client client(server.port());
  client.send(kGet);
  entered.get_future().wait();
  EXPECT_FALSE(server.stop());
  held.reset();
}

TEST_F(HttpTest, WhereItCannotListenItSaysSo) {
  const Running server(echo);
  EXPECT_NE(error_of([&] { HttpServer({.port = server.port()}, echo); }).find("cannot listen"), std::string::npos);
  EXPECT_NE(error_of([] { HttpServer({.host = "nowhere.example"}, echo); }).find("no address"), std::string::npos);
}

// With models behind it.
class Serving {
 public:
  explicit Serving(const Limits& limits = {})
      : service_(std::make_unique<Service>(TinyModels::all(), Service::Settings{.limits = limits})),
        server_([this](const HttpRequest& request,
                       std::shared_ptr<Reply> reply) { service_->handle(request, std::move(reply)); },
                limits) {}
  ~Serving() {
    server_.stop();
    service_.reset();  // its threads hold replies, which must go before the server
  }
  int port() const { return server_.port(); }
  void ask_to_stop() { server_.ask_to_stop(); }

 private:
  std::unique_ptr<Service> service_;
  Running server_;
};

TEST_F(HttpTest, PathsOutsideAreNotThere) {
  const Serving server;
  for (const char* path : {"/../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/%2e%2e/", "//etc/passwd", "/.", "*",
                           "http://other/health", "/health/", "/%00", "/HEALTH"}) {
    Client client(server.port());
    EXPECT_EQ(status_of(client.ask(text("GET ", path, " HTTP/1.1\r\n\r\n"))), 404) << path;
  }
}

TEST_F(HttpTest, BadJsonIsTheClientsMistake) {
  const Serving server;
  Client client(server.port());
  for (const char* body :
       {"", "{", "\xff\xfe", "{\"q\": \"\xc0\xaf\"}", "null", R"({"q": null})", R"({"q": {"a": 1}})"}) {
    EXPECT_EQ(status_of(client.ask(post("/translate", body))), 400) << body;
  }
  EXPECT_EQ(status_of(client.ask(post("/translate", "{\"q\": \"" + std::string(30'000, 'a') + "\"}"))), 413);
}

// Ten times what it can do: everybody gets the answer to his own question, or is told to come back.
TEST_F(HttpTest, UnderOverloadEveryAnswerBelongsToItsQuestion) {
  Limits limits;
  limits.queue = 4;
  limits.batch = 4;
  const std::vector<std::string> lines = TinyModels::lines("zh-en", 24);
  std::vector<std::string> expected;
  const Translator& translator = TinyModels::all().all()[0].translator;
  for (const auto& each : translator.translate(lines)) expected.push_back(each.best[0].text);
  std::atomic<int> good = 0, refused = 0, wrong = 0;
  {
    const Serving server(limits);
    std::vector<std::jthread> clients;
    clients.reserve(16);
    for (std::size_t c = 0; c < 16; ++c) {
      clients.emplace_back([&, c] {
        Client client(server.port());
        for (int i = 0; i < cases(15); ++i) {
          const std::size_t k = (c * 7 + static_cast<std::size_t>(i)) % lines.size();
          const std::string answer = client.ask(post("/translate", "{\"q\": " + json_quote(lines[k]) + "}"));
          if (status_of(answer) == 503 && answer.find("Retry-After") != std::string::npos) {
            ++refused;
          } else if (status_of(answer) == 200 &&
                     Json::parse(body_of(answer), "the answer").at("translatedText").text() == expected[k]) {
            ++good;
          } else {
            ++wrong;
          }
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(good, 0);
  EXPECT_EQ(good + refused, 16 * cases(15));
}

TEST_F(HttpTest, StoppingUnderLoadLosesNothing) {
  std::atomic<int> good = 0, refused = 0, closed = 0, wrong = 0;
  const std::string body = "{\"q\": " + json_quote(TinyModels::lines("zh-en", 1)[0]) + "}";
  {
    Serving server;
    std::latch begun(8);
    std::vector<std::jthread> clients;
    clients.reserve(8);
    for (int c = 0; c < 8; ++c) {
      clients.emplace_back([&] {
        Client client(server.port());
        for (int i = 0; i < 1000; ++i) {
          const std::string answer = client.ask(post("/translate", body));
          if (i == 0) begun.count_down();
          if (answer.empty()) {
            ++closed;
            return;
          }
          ++(status_of(answer) == 200 ? good : status_of(answer) == 503 ? refused : wrong);
        }
      });
    }
    begun.wait();
    server.ask_to_stop();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(closed, 8);
  EXPECT_GE(good, 8);
}

}  // namespace
}  // namespace regard::serve

// The one file that knows Boost (20 s to compile).
#include "serve/http.h"

#include <fmt/format.h>

#include "base/check.h"
#include "io/json.h"

#if REGARD_BEAST

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <deque>
#include <exception>
#include <new>
#include <optional>
#include <random>
#include <unordered_map>
#include <unordered_set>

#endif

namespace regard::serve {

HttpAnswer error_answer(int status, std::string_view text, std::string_view id) {
  HttpAnswer answer{.status = status};
  JsonWriter out;
  answer.body = out.begin_object().key("error").value(text).key("id").value(id).end_object().text();
  if (status == 503 || status == 429) answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

#if REGARD_BEAST

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kFirstRead = 512;            // bytes that a connection holds before it has said anything
constexpr std::size_t kMostUnsent = 4 << 20;       // bytes of events that a client has not taken yet
constexpr auto kLinger = std::chrono::seconds(2);  // for a client to read why it was refused
constexpr std::chrono::steady_clock::duration kLastWords = std::chrono::seconds(3);  // to finish asking, at the end
constexpr auto kAcceptPause = std::chrono::milliseconds(50);

std::chrono::steady_clock::duration seconds(double count) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(count));
}

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

// "Bearer KEY" without "Bearer"
std::string bearer(std::string_view header) {
  constexpr std::string_view kBearer = "Bearer ";
  return header.starts_with(kBearer) ? std::string(header.substr(kBearer.size())) : std::string();
}

// As many files as there may be connections, if the system lets us.
std::int64_t raise_file_limit(std::int64_t wanted) {
  constexpr std::int64_t kOwn = 64;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const auto needed = static_cast<rlim_t>(wanted + kOwn);
  if (limit.rlim_cur < needed) {
    limit.rlim_cur = std::min<rlim_t>(needed, limit.rlim_max);
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur >= needed) return wanted;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(limit.rlim_cur) - kOwn);
}

using Fields = std::vector<std::pair<std::string_view, std::string_view>>;

const Fields& security_headers() {
  static const Fields all = {
      {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"X-Frame-Options", "DENY"},
      {"Cache-Control", "no-store"},
  };
  return all;
}

bool same_name(std::string_view a, std::string_view b) {
  return beast::iequals({a.data(), a.size()}, {b.data(), b.size()});
}

bool says(const HttpAnswer& answer, std::string_view name) {
  return std::any_of(answer.headers.begin(), answer.headers.end(),
                     [&](const auto& each) { return same_name(each.first, name); });
}

}  // namespace

class Session;

struct HttpServer::Impl {
  Settings settings;
  Handler handler;
  std::int64_t most = 0;  // connections
  std::unordered_set<Session*> sessions;
  std::unordered_map<std::string, std::int64_t> under_way;  // requests, by address
  std::atomic<std::int64_t> connected = 0;
  bool draining = false;
  std::uint64_t next_id = 0;
  std::string id_prefix;

  asio::io_context io{1};  // below what its handlers use
  tcp::acceptor acceptor{io};
  asio::steady_timer pause{io}, drain_timer{io};
  bool all_answered = true;

  void accept();
  void take(tcp::socket socket);
  void drain();
  void left(Session* session);
  std::string make_id() { return fmt::format("{}-{}", id_prefix, ++next_id); }
};

// A connection. All of it happens in the thread of input and output.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(HttpServer::Impl& server, tcp::socket socket, std::string address)
      : server_(server),
        address_(std::move(address)),
        stream_(std::move(socket)),
        buffer_(server.settings.limits.header + (16 << 10)),
        deadline_(server.io) {}
  ~Session() {
    if (state_ != State::kEnded) server_.sessions.erase(this);  // memory ran out, or all ends at once
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start() { wait_for_request(); }

  void drain() {
    if (state_ == State::kIdle) return end();
    if (state_ != State::kReading) return;
    deadline_.expires_after(std::min(kLastWords, seconds(limits().read_seconds)));
    deadline_.async_wait([self = shared_from_this(), number = request_](error_code why) {
      if (!why) self->on_deadline(number);
    });
  }

  void reply(std::uint64_t request, HttpAnswer answer) {
    if (request != request_) return;
    if (state_ == State::kWorking) return write(std::move(answer));
    if (state_ != State::kEvents) return;
    push(fmt::format("event: error\ndata: {}\n\n", answer.body));  // it went wrong half-way
    end_events(request);
  }

  void event(std::uint64_t request, std::string text) {
    if (request != request_) return;
    if (state_ == State::kWorking) begin_events();
    if (state_ == State::kEvents) push(std::move(text));
  }

  void end_events(std::uint64_t request) {
    if (request != request_ || state_ != State::kEvents) return;
    last_pushed_ = true;
    if (unsent_.empty()) linger();
  }

  // Closes, and forgets it.
  void end() {
    if (state_ == State::kEnded) return;
    finish_request();
    state_ = State::kEnded;
    error_code ignored;
    deadline_.cancel(ignored);
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.close();
    server_.left(this);
  }

 private:
  enum class State : std::uint8_t { kIdle, kReading, kWorking, kWriting, kEvents, kLingering, kEnded };
  const Limits& limits() const { return server_.settings.limits; }

  // One that calls a member function, and keeps this alive until then.
  template <class Member>
  auto then(Member member) {
    return [self = shared_from_this(), member](error_code error, std::size_t bytes) {
      if (self->state_ != State::kEnded) ((*self).*member)(error, bytes);
    };
  }

  void wait_for_request() {
    if (server_.draining) return end();
    parser_.reset();
    if (buffer_.size() > 0) return read_header();
    buffer_ = beast::flat_buffer(buffer_.max_size());  // what the last one needed is not kept
    state_ = State::kIdle;
    stream_.expires_after(seconds(limits().idle_seconds));
    stream_.async_read_some(buffer_.prepare(kFirstRead), then(&Session::on_first_bytes));
  }

  void on_first_bytes(error_code error, std::size_t bytes) {
    if (error) return end();
    buffer_.commit(bytes);
    read_header();
  }

  void read_header() {
    state_ = State::kReading;
    id_ = server_.make_id();
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(limits().header));
    parser_->body_limit(limits().body);
    stream_.expires_after(seconds(limits().read_seconds));  // once, for all of the request
    http::async_read_header(stream_, buffer_, *parser_, then(&Session::on_header));
  }

  void on_header(error_code error, std::size_t) {
    if (error) return refuse(error);
    if (parser_->get().count(http::field::content_length) > 1) return refuse(http::error::bad_content_length);
    if (parser_->content_length() && *parser_->content_length() > limits().body) return refuse(http::error::body_limit);
    if (!beast::iequals(parser_->get()[http::field::expect], "100-continue")) return read_body();
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kContinue.data(), kContinue.size()), then(&Session::on_continued));
  }

  void on_continued(error_code error, std::size_t) {
    if (error) return end();
    read_body();
  }

  void read_body() { http::async_read(stream_, buffer_, *parser_, then(&Session::on_request)); }

  void refuse(error_code error) {
    closing_ = true;
    if (error == http::error::body_limit) {
      write(error_answer(413, fmt::format("a body of more than {} bytes", limits().body), id_));
    } else if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      write(error_answer(431, fmt::format("a header of more than {} bytes", limits().header), id_));
    } else if (error.category() == http::make_error_code(http::error::bad_method).category() &&
               error != http::error::end_of_stream && error != http::error::partial_message) {
      write(error_answer(400, "this is no HTTP request", id_));
    } else {
      end();  // gone, or too slow
    }
  }

  void on_request(error_code error, std::size_t) {
    if (error) return refuse(error);
    auto& message = parser_->get();
    closing_ = !message.keep_alive();
    head_ = message.method() == http::verb::head;
    version_ = message.version();
    std::string_view path = view(message.target());
    HttpRequest request{.method = std::string(head_ ? "GET" : view(message.method_string())),
                        .path = std::string(path.substr(0, path.find('?'))),
                        .type = std::string(view(message[http::field::content_type])),
                        .body = std::move(message.body()),
                        .key = bearer(view(message[http::field::authorization])),
                        .id = id_};
    parser_.reset();
    stream_.expires_never();
    state_ = State::kWorking;
    const std::int64_t before = server_.under_way[address_]++;
    counted_ = true;
    if (limits().per_client > 0 && before >= limits().per_client) {
      return write(error_answer(429, "too many requests of this client are under way", id_));
    }
    gone_ = std::stop_source();
    watch_for_leaving();
    deadline_.expires_after(seconds(limits().request_seconds));
    deadline_.async_wait([self = shared_from_this(), number = request_](error_code why) {
      if (!why) self->on_deadline(number);
    });
    const auto reply = std::make_shared<SessionReply>(shared_from_this(), request_, gone_.get_token());
    try {
      server_.handler(request, reply);
    } catch (const std::exception&) {
      reply->send(error_answer(500, "an internal error", id_));
    }
  }

  void on_deadline(std::uint64_t request) {
    if (request != request_) return;
    if (state_ == State::kWorking) {
      write(error_answer(503, fmt::format("no answer within {} s", limits().request_seconds), id_));
    } else if (state_ == State::kEvents || state_ == State::kReading) {
      end();
    }
  }

  // While an answer is computed nothing is read, but that the client closes its side is noticed.
  void watch_for_leaving() {
    stream_.socket().async_wait(tcp::socket::wait_read,
                                [self = shared_from_this(), number = request_](error_code error) {
                                  if (!error) self->on_readable(number);
                                });
  }

  void on_readable(std::uint64_t request) {
    if (request != request_ || (state_ != State::kWorking && state_ != State::kEvents)) return;
    char byte = 0;
    const auto got = recv(stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0) return;  // the next request already
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return watch_for_leaving();
    end();
  }

  // Whoever still works for the request may stop.
  void finish_request() {
    ++request_;
    gone_.request_stop();
    if (!counted_) return;
    counted_ = false;
    const auto found = server_.under_way.find(address_);
    if (found != server_.under_way.end() && --found->second <= 0) server_.under_way.erase(found);
  }

  void write(HttpAnswer answer) {
    finish_request();
    state_ = State::kWriting;
    error_code ignored;
    deadline_.cancel(ignored);
    stream_.socket().cancel(ignored);  // the watch
    if (server_.draining) closing_ = true;
    answer_.emplace();
    answer_->result(static_cast<unsigned>(answer.status));
    answer_->version(version_);
    answer_->keep_alive(!closing_);
    answer_->set(http::field::content_type, answer.type);
    answer_->set("X-Request-Id", id_);
    for (const auto& [name, value] : security_headers()) {
      if (!says(answer, name))
        answer_->set(boost::string_view(name.data(), name.size()), boost::string_view(value.data(), value.size()));
    }
    for (const auto& [name, value] : answer.headers) answer_->set(name, value);
    answer_->body() = std::move(answer.body);
    answer_->prepare_payload();
    if (head_) answer_->body().clear();  // its length stays
    stream_.expires_after(seconds(limits().write_seconds));
    writer_.emplace(*answer_);
    http::async_write(stream_, *writer_, then(&Session::on_written));
  }

  void on_written(error_code error, std::size_t) {
    writer_.reset();
    answer_.reset();
    head_ = false;
    if (error) return end();
    if (closing_) return linger();
    wait_for_request();
  }

  // The answer shall arrive: to close while the client still sends would throw it away.
  void linger() {
    finish_request();
    state_ = State::kLingering;
    error_code ignored;
    deadline_.cancel(ignored);
    stream_.socket().cancel(ignored);
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kLinger);
    buffer_ = beast::flat_buffer(buffer_.max_size());
    drop_more({}, 0);
  }

  void drop_more(error_code error, std::size_t) {
    if (error) return end();
    stream_.async_read_some(buffer_.prepare(4096), then(&Session::drop_more));  // never committed
  }

  void begin_events() {
    state_ = State::kEvents;
    closing_ = true;
    std::string head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nX-Request-Id: " + id_;
    for (const auto& [name, value] : security_headers()) head += fmt::format("\r\n{}: {}", name, value);
    push(head + "\r\n\r\n");
  }

  void push(std::string text) {
    unsent_bytes_ += text.size();
    if (unsent_bytes_ > kMostUnsent) return end();  // it does not read
    unsent_.push_back(std::move(text));
    if (unsent_.size() == 1) send_next();
  }

  void send_next() {
    stream_.expires_after(seconds(limits().write_seconds));
    asio::async_write(stream_, asio::buffer(unsent_.front()), then(&Session::on_sent));
  }

  void on_sent(error_code error, std::size_t) {
    if (error) return end();
    unsent_bytes_ -= unsent_.front().size();
    unsent_.pop_front();
    if (!unsent_.empty()) return send_next();
    stream_.expires_never();
    if (last_pushed_) linger();
  }

  class SessionReply : public Reply {
   public:
    SessionReply(std::shared_ptr<Session> session, std::uint64_t request, std::stop_token gone)
        : session_(std::move(session)), request_(request), gone_(std::move(gone)) {}
    ~SessionReply() override {
      asio::io_context& io = session_->server_.io;
      const bool forgotten = !answered_;
      asio::post(io, [session = std::move(session_), request = request_, forgotten] {
        if (forgotten) session->reply(request, error_answer(500, "an internal error", session->id_));
      });
    }
    void send(HttpAnswer answer) override {
      answered_ = true;
      asio::post(session_->server_.io, [session = session_, request = request_, answer = std::move(answer)]() mutable {
        session->reply(request, std::move(answer));
      });
    }
    void event(std::string_view name, std::string_view data) override {
      answered_ = true;
      std::string text = fmt::format("event: {}\ndata: {}\n\n", name, data);
      asio::post(session_->server_.io, [session = session_, request = request_, text = std::move(text)]() mutable {
        session->event(request, std::move(text));
      });
    }
    void end() override {
      asio::post(session_->server_.io, [session = session_, request = request_] { session->end_events(request); });
    }
    std::stop_token gone() const override { return gone_; }

   private:
    std::shared_ptr<Session> session_;
    std::uint64_t request_;
    std::stop_token gone_;
    std::atomic<bool> answered_ = false;
  };

  HttpServer::Impl& server_;
  std::string address_, id_;
  State state_ = State::kIdle;
  std::uint64_t request_ = 0;  // counts them: what belongs to an earlier one is dropped
  bool closing_ = false, head_ = false, counted_ = false, last_pushed_ = false;
  unsigned version_ = 11;
  std::stop_source gone_{std::nostopstate};
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  asio::steady_timer deadline_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> answer_;
  std::optional<http::response_serializer<http::string_body>> writer_;
  std::deque<std::string> unsent_;
  std::size_t unsent_bytes_ = 0;
};

void HttpServer::Impl::accept() {
  acceptor.async_accept([this](error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted || draining) return;
    if (error) {  // no more files, most likely: others will close theirs
      pause.expires_after(kAcceptPause);
      pause.async_wait([this](error_code stopped) {
        if (!stopped && !draining) accept();
      });
      return;
    }
    try {
      take(std::move(socket));
    } catch (const std::bad_alloc&) {  // this one is not served, the next may be
    }
    accept();
  });
}

void HttpServer::Impl::take(tcp::socket socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return;
  if (static_cast<std::int64_t>(sessions.size()) >= most) {
    static const std::string full = [] {
      const HttpAnswer answer = error_answer(503, "too many connections", "");
      return fmt::format(
          "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
          "Connection: close\r\nContent-Length: {}\r\n\r\n{}",
          answer.body.size(), answer.body);
    }();
    send(socket.native_handle(), full.data(), full.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return;
  }
  socket.set_option(tcp::no_delay(true), error);
  const auto session = std::make_shared<Session>(*this, std::move(socket), peer.address().to_string());
  sessions.insert(session.get());
  connected = static_cast<std::int64_t>(sessions.size());
  session->start();
}

void HttpServer::Impl::left(Session* session) {
  sessions.erase(session);
  connected = static_cast<std::int64_t>(sessions.size());
  if (draining && sessions.empty()) io.stop();
}

void HttpServer::Impl::drain() {
  if (draining) return;
  draining = true;
  error_code ignored;
  acceptor.close(ignored);
  pause.cancel(ignored);
  drain_timer.expires_after(seconds(settings.limits.drain_seconds));
  drain_timer.async_wait([this](error_code error) {
    if (error) return;
    all_answered = false;
    io.stop();
  });
  const std::vector<Session*> all(sessions.begin(), sessions.end());
  for (Session* each : all) each->drain();
  if (sessions.empty()) io.stop();
}

HttpServer::HttpServer(const Settings& settings, Handler handler) : impl_(std::make_unique<Impl>()) {
  impl_->settings = settings;
  impl_->handler = std::move(handler);
  impl_->most = raise_file_limit(settings.limits.connections);
  std::random_device random;
  impl_->id_prefix = fmt::format("{:08x}", random());
  error_code error;
  const std::string host = settings.host == "localhost" ? "127.0.0.1" : settings.host;
  const auto address = asio::ip::make_address(host, error);
  check(!error, "serve: '", settings.host, "' is no address, expected one like 127.0.0.1, 0.0.0.0 or ::1");
  check(settings.port >= 0 && settings.port < 65536, "serve: port ", settings.port, ", expected 0 to 65535");
  const tcp::endpoint here(address, static_cast<unsigned short>(settings.port));
  tcp::acceptor& acceptor = impl_->acceptor;
  acceptor.open(here.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(here, error);
  if (!error) acceptor.listen(4096, error);
  check(!error, "serve: cannot listen on ", settings.host, " port ", settings.port, ": ", error.message());
}

HttpServer::~HttpServer() = default;

int HttpServer::port() const { return impl_->acceptor.local_endpoint().port(); }
std::int64_t HttpServer::connections() const { return impl_->connected; }

bool HttpServer::run(const std::stop_token& stop) {
  const auto guard = asio::make_work_guard(impl_->io);  // threads that compute are work, too
  impl_->accept();
  const std::stop_callback asked(stop, [this] { asio::post(impl_->io, [this] { impl_->drain(); }); });
  for (;;) {
    try {
      impl_->io.run();
      return impl_->all_answered;
    } catch (const std::bad_alloc&) {  // one connection is lost, the others go on
    }
  }
}

bool HttpServer::available() { return true; }

#else

struct HttpServer::Impl {};

HttpServer::HttpServer(const Settings&, Handler) {
  fail(ErrorKind::kInput, "serve: this program was built without Boost, which the server needs");
}
HttpServer::~HttpServer() = default;
int HttpServer::port() const { return 0; }
std::int64_t HttpServer::connections() const { return 0; }
bool HttpServer::run(const std::stop_token&) { return false; }
bool HttpServer::available() { return false; }

#endif

}  // namespace regard::serve

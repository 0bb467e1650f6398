// A client that sends the bytes it is told, good or bad, and reads what comes back.
//
//     Client client(port);
//     const std::string answer = client.ask(post("/translate", body));
//     status_of(answer), body_of(answer)
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace regard {

class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void finish() { ::shutdown(socket_, SHUT_WR); }  // nothing more will come
  // Until the server closes.
  std::string read_all() {
    while (more()) {
    }
    return std::exchange(buffer_, "");
  }
  // One answer; "" if the server closes before its end.
  std::string read_answer() {
    for (;;) {
      const std::size_t head = buffer_.find("\r\n\r\n");
      if (head != std::string::npos) {
        const std::size_t place = buffer_.find("Content-Length: ");
        const std::size_t length = place < head ? std::stoul(buffer_.substr(place + 16)) : 0;
        const std::size_t all = head + 4 + length;
        if (buffer_.size() >= all) {
          std::string answer = buffer_.substr(0, all);
          buffer_.erase(0, all);
          return answer;
        }
      }
      if (!more()) return "";
    }
  }
  std::string ask(std::string_view bytes) {
    send(bytes);
    return read_answer();
  }

 private:
  bool more() {
    char bytes[4096];
    const auto got = ::recv(socket_, bytes, sizeof bytes, 0);
    if (got <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }
  int socket_;
  bool connected_ = false;
  std::string buffer_;
};

inline int status_of(std::string_view answer) {
  return answer.starts_with("HTTP/1.1 ") ? std::atoi(std::string(answer.substr(9, 3)).c_str()) : 0;
}

inline std::string body_of(std::string_view answer) {
  const std::size_t head = answer.find("\r\n\r\n");
  return head == std::string_view::npos ? "" : std::string(answer.substr(head + 4));
}

inline std::string post(std::string_view path, std::string_view body) {
  return std::string("POST ") + std::string(path) +
         " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}

}  // namespace regard

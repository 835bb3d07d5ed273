// A closed-loop HTTP/1.1 load generator on node:net with prebuilt request bytes: the cheapest client there is, the same for
// every server, so that the server is what is measured. It reads content-length and chunked answers (so SSE too) and checks
// each one: status 200 and the expected text in the bytes received.
import net from "node:net";

const HEAD_END = Buffer.from("\r\n\r\n");

function requestBytes({ port, path = "/mcp", body, headers }) {
  const bytes = Buffer.from(body);
  const all = { host: `127.0.0.1:${port}`, connection: "keep-alive", ...headers, "content-length": bytes.length };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n`), bytes]);
}

/** One connection with one request in flight. */
class Connection {
  #socket;
  #expected;
  #answered = null;
  #mode = "head";
  #head = null;
  #need = 0;
  #line = "";
  #status = 0;
  #bytes = 0;
  #found = false;

  constructor(port, expected) {
    this.#expected = Buffer.from(expected);
    this.#socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
    this.#socket.on("data", (data) => this.#read(data));
    this.#socket.on("error", (error) => this.#answer({ ok: false, error, bytes: 0 }));
    this.#socket.on("close", () => this.#answer({ ok: false, error: new Error("connection closed"), bytes: 0 }));
  }

  send(bytes, answered) {
    this.#answered = answered;
    this.#mode = "head";
    this.#bytes = 0;
    this.#found = false;
    this.#socket.write(bytes);
  }

  close() {
    this.#answered = null;
    this.#socket.destroy();
  }

  #answer(result) {
    const answered = this.#answered;
    this.#answered = null;
    answered?.(result);
  }

  #read(data) {
    if (!this.#found && data.includes(this.#expected)) this.#found = true;
    let rest = data;
    while (rest.length > 0 && this.#mode !== "done") rest = this.#step(rest);
    if (this.#mode !== "done") return;
    this.#answer({ ok: this.#status === 200 && this.#found, status: this.#status, bytes: this.#bytes });
  }

  /** Reads one piece of the answer. @returns what is left of `data` */
  #step(data) {
    switch (this.#mode) {
      case "head": {
        const all = this.#head ? Buffer.concat([this.#head, data]) : data;
        const end = all.indexOf(HEAD_END);
        this.#head = end < 0 ? all : null;
        if (end < 0) return all.subarray(all.length);
        const head = all.latin1Slice(0, end);
        this.#status = Number(head.slice(9, 12));
        const length = /\r\ncontent-length: *(\d+)/i.exec(head);
        this.#need = length ? Number(length[1]) : 0;
        if (length) this.#mode = this.#need > 0 ? "body" : "done";
        else this.#mode = /\r\ntransfer-encoding: *chunked/i.test(head) ? "size" : "done";
        return all.subarray(end + 4);
      }
      case "size": {
        const end = data.indexOf(10);
        if (end < 0) {
          this.#line += data.latin1Slice();
          return data.subarray(data.length);
        }
        this.#need = Number.parseInt(this.#line + data.latin1Slice(0, end), 16);
        this.#line = "";
        this.#mode = this.#need > 0 ? "chunk" : "trailer";
        return data.subarray(end + 1);
      }
      case "trailer": {
        const end = data.indexOf(10);
        if (end >= 0) this.#mode = "done";
        return data.subarray(end < 0 ? data.length : end + 1);
      }
      default: {
        const count = Math.min(this.#need, data.length);
        this.#need -= count;
        if (this.#mode !== "gap") this.#bytes += count;
        if (this.#need === 0) {
          if (this.#mode === "body") this.#mode = "done";
          else if (this.#mode === "gap") this.#mode = "size";
          else {
            this.#mode = "gap";
            this.#need = 2;
          }
        }
        return data.subarray(count);
      }
    }
  }
}

/**
 * Runs `connections` with one request in flight each, for `ms` milliseconds or `calls` calls.
 * @returns calls, calls per second, median latency in ms; throws when an answer was wrong
 */
export function load({ port, body, headers, expected, connections = 1, ms = 2_000, calls = Number.POSITIVE_INFINITY }) {
  return new Promise((resolve, reject) => {
    const bytes = requestBytes({ port, body, headers });
    const latencies = [];
    let started = 0;
    let bodyBytes = 0;
    let running = connections;
    let failure;
    const all = [];
    const begin = performance.now();
    const finish = () => {
      running -= 1;
      if (running > 0) return;
      const seconds = (performance.now() - begin) / 1000;
      for (const connection of all) connection.close();
      if (failure) return reject(failure);
      latencies.sort((a, b) => a - b);
      const count = latencies.length;
      const median = latencies[count >> 1];
      resolve({ calls: count, seconds, perSecond: count / seconds, median, bytes: bodyBytes / Math.max(1, count) });
    };
    for (let i = 0; i < connections; i++) {
      const connection = new Connection(port, expected);
      all.push(connection);
      const next = () => {
        const now = performance.now();
        if (failure || now - begin >= ms || started >= calls) return finish();
        started += 1;
        connection.send(bytes, (answer) => {
          if (!answer.ok) failure ??= answer.error ?? new Error(`wrong answer, status ${answer.status}`);
          latencies.push(performance.now() - now);
          bodyBytes += answer.bytes;
          next();
        });
      };
      next();
    }
  });
}

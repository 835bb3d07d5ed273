// The child process of `stubStdio`: joins its standard streams to the test that started it, which decides what it says.
// Plain and without imports of our own, so that many start fast. It lives no longer than the test's end of the socket.
import { connect } from "node:net";
import { createInterface } from "node:readline";

const host = connect({ port: Number(process.argv[2]), host: "127.0.0.1", allowHalfOpen: true });
host.write(`${process.pid}\n`);
// the socket ends with the process, not with its input
process.stdin.pipe(host, { end: false });
let stubborn = false;
process.stdin.on("end", () => {
  if (!stubborn) process.exit(0);
});
process.on("SIGTERM", () => {
  if (!stubborn) process.exit(0);
});
process.stdout.on("error", () => {});
const commands = {
  out: (text) => process.stdout.write(Buffer.from(text, "base64")),
  err: (text) => process.stderr.write(Buffer.from(text, "base64")),
  // behind whatever was written before
  exit: (code) => process.stdout.write("", () => process.exit(code)),
  close: () => process.stdout.end(),
  stubborn: () => {
    stubborn = true;
  },
};
const lines = createInterface({ input: host });
lines.on("error", () => {});
lines.on("line", (line) => {
  const [name, value] = JSON.parse(line);
  commands[name](value);
});
host.on("close", () => process.exit(0));
host.on("error", () => process.exit(0));

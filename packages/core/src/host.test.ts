import { expect, it } from "vitest";
import { isLoopback } from "./host.ts";

it.each(["localhost", "LOCALHOST", "app.localhost", "127.0.0.1", "127.255.0.3", "::1", "[::1]"])(
  "%s is this machine",
  (host) => expect(isLoopback(host)).toBe(true),
);

it.each([
  "",
  "localhost.example",
  "notlocalhost",
  "127.0.0.1.example",
  "127.0.1",
  "128.0.0.1",
  "0.0.0.0",
  "::",
  "::11",
])("%j is not", (host) => expect(isLoopback(host)).toBe(false));

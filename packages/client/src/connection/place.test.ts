import { expect, it } from "vitest";
import { placeOf } from "./place.ts";

it("an address is shown without what may be a credential in it", () => {
  expect(placeOf({ url: "https://me:secret@a.example/mcp?key=1" })).toBe("https://a.example/mcp?…");
});

it("a command is shown with its arguments, but without the values of flags that name a secret", () => {
  const args = [
    "server.js",
    "--port",
    "80",
    "--api-key",
    "sk-1",
    "--token=abc",
    "--verbose",
    "-password",
    "p",
    "--auth",
    "--x",
  ];
  expect(placeOf({ command: "node", args })).toBe(
    "node server.js --port 80 --api-key … --token=… --verbose -password … --auth --x",
  );
});

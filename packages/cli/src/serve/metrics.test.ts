import { describe, expect, it } from "vitest";
import { mergeNumbers } from "./metrics.ts";

describe("the numbers of several workers", () => {
  it("become one text that says whose each of them is, with what belongs together in one place", () => {
    const text = (calls: number) => `# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{tool="a } b"} ${calls}
calls_total ${calls}
# TYPE up gauge
up{} 1
`;
    const merged = mergeNumbers(
      new Map([
        [1, text(3)],
        [2, `${text(4)}# TYPE late gauge\nlate 5\n`],
      ]),
    );
    expect(merged).toBe(`# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{worker="1",tool="a } b"} 3
calls_total{worker="1"} 3
calls_total{worker="2",tool="a } b"} 4
calls_total{worker="2"} 4
# TYPE up gauge
up{worker="1"} 1
up{worker="2"} 1
# TYPE late gauge
late{worker="2"} 5
`);
  });
});

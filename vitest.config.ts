import { defineConfig } from "vitest/config";
import SlowFirst from "./test/slow-first.ts";

// Vite and Node add "import" and "require" themselves: "import" forced on a require breaks pg. No "module": it names files for
// bundlers, which Node cannot always load (@opentelemetry/api)
const conditions = ["@tenon/source", "node", "default"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    include: [
      "packages/*/{src,test}/**/*.test.ts",
      "apps/*/{src,test}/**/*.test.ts",
      "examples/**/*.test.ts",
      "test/**/*.test.ts",
    ],
    globalSetup: ["./test/programs.ts"],
    setupFiles: ["./test/fresh-process.ts"],
    reporters: ["default", "./test/closing-line.ts"],
    // they end what hangs; what starts programs takes long where much else runs
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // twice the processors of a small machine: many tests wait, for a process or for a clock
    maxWorkers: 4,
    maxConcurrency: 3,
    // a machine that does other work as well; a second failure is real
    retry: process.env.CI ? 1 : 0,
    // files share the modules their worker has loaded: to load them for each file takes as long as the tests
    isolate: false,
    sequence: { sequencer: SlowFirst },
  },
});

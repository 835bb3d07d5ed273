import { defineConfig } from "vitest/config";

// Vite and Node add "import" and "require" themselves: "import" forced on a require breaks pg
const conditions = ["@tenon/source", "node", "module", "default"];

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
    reporters: ["default", "./test/closing-line.ts"],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    maxWorkers: 3,
    maxConcurrency: 3,
    // files share the modules their worker has loaded: to load them for each file takes as long as the tests
    isolate: false,
    // tests with processes, ports and clocks share a machine with whatever else it does; a second failure is real
    retry: process.env.CI ? 1 : 0,
  },
});

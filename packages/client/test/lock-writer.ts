// Accepts five tools of a server into the lock file that others write to at the same time.
import { acceptTools } from "../src/trust/index.ts";

const [file = "", from = ""] = process.argv.slice(2);
for (let i = 0; i < 5; i++) {
  const tool = {
    server: `s${from}`,
    wireName: `t${i}`,
    description: "",
    inputSchema: { type: "object" },
    annotations: {},
  };
  await acceptTools(file, [tool]);
}

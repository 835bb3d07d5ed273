// The tools every server registers: `add`, and fillers with ten fields each.

export const INFO = { name: "bench-server", version: "1.0.0" };

function fillerSchema(z) {
  const fields = [
    (n) => z.string().describe(`Field ${n}: a text value`),
    (n) => z.number().min(0).max(1000).describe(`Field ${n}: a bounded number`),
    (n) => z.boolean().optional().describe(`Field ${n}: a flag`),
    (n) => z.enum(["red", "green", "blue"]).describe(`Field ${n}: a colour`),
    (n) => z.array(z.string()).optional().describe(`Field ${n}: a list`),
  ];
  return z.object(Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`field_${n}`, fields[n % 5](n)])));
}

/** `count` definitions in the given copy of Zod (a process should load only one); each call builds every schema anew, as code inside a per-request factory does. */
export function tools(z, count) {
  const add = {
    name: "add",
    description: "Add two numbers",
    input: z.object({ a: z.number(), b: z.number() }),
    run: async ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }] }),
  };
  const fillers = Array.from({ length: count - 1 }, (_, i) => ({
    name: `tool_${i + 1}`,
    description: `Filler tool number ${i + 1} used by the benchmark`,
    input: fillerSchema(z),
    run: async () => ({ content: [{ type: "text", text: "ok" }] }),
  }));
  return [add, ...fillers];
}

/** Tells the parent where the server listens, and ends when told to. */
export function announce(port) {
  process.on("SIGTERM", () => process.exit(0));
  process.stdout.write(`READY ${port}\n`);
}

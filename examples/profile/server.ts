import { createServer } from "@tenon/server";
import { z } from "zod";
import { openPage } from "./page.ts";

const details = z.object({ email: z.email().describe("where we write to"), age: z.int().min(0).max(150) });

/** Where PINs are kept: only the page writes here, so no model and no client ever reads one. */
const pins = new Map<string, string>();

const server = createServer({
  name: "profiles",
  version: "1.0.0",
  pageWaitMs: 1_000, // so that the example need not wait for people
  async lifespan() {
    const page = await openPage(async (id, pin) => {
      // the link works once: who finds it later sets nothing
      if (pins.has(id) || !/^\d{4,12}$/.test(pin)) throw new Error("a PIN is 4 to 12 digits, set once");
      await server.completeElicitation(id, { data: { digits: pin.length } });
      pins.set(id, pin);
    });
    return { value: page, close: page.close };
  },
});
server.tool(
  "create_profile",
  { description: "Creates a profile; asks for what is missing.", input: z.object({ name: z.string() }) },
  async ({ name }, ctx) => {
    const answer = await ctx.elicit(`Details for ${name}?`, details);
    // three things a person can do, three outcomes
    switch (answer.action) {
      case "accept":
        return { name, ...answer.data };
      case "decline":
        return { name };
      case "cancel":
        return `No profile was created for ${name}`;
    }
  },
);
// a secret has no place in a form: the person types it on our own page, and the tool hears only that it is done
server.tool(
  "set_pin",
  { description: "Has the person set a PIN on a page.", input: z.object({ name: z.string() }) },
  async ({ name }, ctx) => {
    const answer = await ctx.elicitUrl(`Set a PIN for ${name}`, (id) => ctx.lifespan.address(id));
    return answer.action === "accept" ? { name, pin: "set", ...Object(answer.data) } : `${name} has no PIN`;
  },
);

export default server;
await server.run(import.meta);

import { createServer } from "@tenon/server";
import { z } from "zod";

const details = z.object({ email: z.email().describe("where we write to"), age: z.int().min(0).max(150) });

const server = createServer({ name: "profiles", version: "1.0.0" });
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

export default server;
await server.run(import.meta);

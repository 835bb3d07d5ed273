import { z } from "zod";
import { createServer, type ServerOptions, type TenonServer } from "../src/index.ts";

/** Who asks, in which session, of which department. */
export const CONTEXT = z.object({
  user_id: z.string(),
  session_id: z.string(),
  department: z.enum(["sales", "support"]).optional(),
});

/** A desk whose every call must say who asks. */
export function desk(options: Partial<ServerOptions> = {}): TenonServer {
  const server = createServer({
    name: "desk",
    version: "1.0.0",
    logSink: () => undefined,
    contract: { schema: CONTEXT },
    ...options,
  });
  server.tool("who", {}, (_, ctx) => ({ context: ctx.context, session: ctx.sessionId ?? null }));
  server.tool("read", {}, async (_, ctx) => (await ctx.readResource("desk://note"))[0]?.text ?? "nothing");
  server.tool("change", {}, (_, ctx) => {
    Reflect.set(ctx.context ?? {}, "user_id", "somebody else");
    return { context: ctx.context };
  });
  server.tool("sure", {}, async (_, ctx) => {
    const answer = await ctx.elicit("Sure?", z.boolean());
    return { action: answer.action, user: ctx.context?.user_id };
  });
  server.tool("long", { task: "optional" }, (_, ctx) => ({
    context: ctx.context,
    session: ctx.sessionId ?? null,
    task: ctx.task !== undefined,
  }));
  server.resource("desk://note", { mimeType: "text/plain" }, (_, ctx) => `for ${ctx.context?.user_id}`);
  server.prompt("greet", {}, (_, ctx) => `Dear ${ctx.context?.user_id}`);
  return server;
}

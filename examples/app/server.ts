import { createServer, text } from "@tenon/server";
import { app, showsApps } from "@tenon/server/apps";
import { z } from "zod";

const budgets: Record<string, { total: number; used: number }> = {
  技术部: { total: 500, used: 320 },
  财务部: { total: 150, used: 90 },
};
const input = z.object({ department: z.string() });

const server = createServer({ name: "budgets", version: "1.0.0" });
app(server, {
  uri: "ui://budget/view.html",
  name: "Budget of a department",
  html: new URL("view.html", import.meta.url),
  csp: { connectDomains: [], resourceDomains: [] }, // the page needs nothing from anywhere
  prefersBorder: true,
})
  .tool("show_budget", { description: "Shows a department's budget in 万元.", input }, ({ department }, ctx) => {
    const budget = { department, ...(budgets[department] ?? { total: 0, used: 0 }) };
    // where no view is shown, the text must say everything
    return text(showsApps(ctx.client) ? `The budget of ${department} is on screen` : JSON.stringify(budget), budget);
  })
  .tool(
    "refresh_budget",
    { description: "Called by the page's own button.", input, visibility: ["app"] },
    ({ department }) => ({ department, ...(budgets[department] ?? { total: 0, used: 0 }) }),
  );

export default server;
await server.run(import.meta);

import { createClient, renderText } from "@tenon/client";
import { connect } from "@tenon/server/testing";
import { check } from "../lib/check.ts";
import { child } from "../lib/child.ts";
import server from "./server.ts";

const MIME = "text/html;profile=mcp-app";

// A host that shows views says so, and looks at a tool's metadata for the page that belongs to it.
await using host = await connect(server, {
  capabilities: { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: [MIME] } } },
});
check("the extension is offered", host.server.capabilities.extensions, { "io.modelcontextprotocol/ui": {} });
const tools = await host.listTools();
check(
  "the model's tool and the page's own tool",
  tools.map(({ name, _meta }) => [name, _meta?.ui]),
  [
    ["refresh_budget", { resourceUri: "ui://budget/view.html", visibility: ["app"] }],
    ["show_budget", { resourceUri: "ui://budget/view.html" }],
  ],
);
const [page] = await host.readResource("ui://budget/view.html");
check("the page", page && "text" in page ? page.text : "", /<title>Budget<\/title>/);
check(
  "its type and limits",
  [page?.mimeType, page?._meta?.ui],
  [MIME, { csp: { connectDomains: [], resourceDomains: [] }, prefersBorder: true }],
);
const shown = await host.callTool("show_budget", { department: "技术部" });
check("short text beside a view", shown.text, "The budget of 技术部 is on screen");
check("and the data the view gets", shown.structured, { department: "技术部", total: 500, used: 320 });

// A client without views gets everything as text.
await using client = createClient({ servers: { budgets: child(import.meta) } });
const plain = await client.callTool("budgets", "show_budget", { department: "技术部" });
check("all of it in the text elsewhere", renderText(plain.content), '{"department":"技术部","total":500,"used":320}');

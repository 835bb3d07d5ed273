import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { tool } from "@langchain/core/tools";
import { ReducedValue, StateSchema } from "@langchain/langgraph";
import { approvals, type McpTool, mcpMiddleware, mcpTools, type RunnableAgent } from "@tenon/agent";
import { type CatalogPrompt, createClient, type ServerInfo } from "@tenon/client";
import { createAgent } from "langchain";
import { z } from "zod";
import { isPhone } from "../phone.ts";
import { SERVER_NAMES, type ServerName } from "../servers/names.ts";
import type { Texts } from "../texts/index.ts";
import { type AuditLine, auditLog, authInject, type DeskContext } from "./interceptors.ts";
import type { Threads } from "./threads.ts";

export interface DeskOptions {
  /** Endpoints of the servers. */
  urls: Readonly<Record<ServerName, string>>;
  model: BaseChatModel;
  threads: Threads;
  texts: Texts;
}

/** The agent over both servers, made anew when what the servers offer has changed. */
export interface Desk {
  /** The agent with what can be reached right now; servers that are back are taken in. */
  agent(): Promise<RunnableAgent>;
  servers(): readonly ServerInfo[];
  tools(): Promise<readonly { name: string; description: string }[]>;
  prompts(): Promise<readonly CatalogPrompt[]>;
  /** A server's prompt as text for the model. */
  renderPrompt(prompt: CatalogPrompt, args: Record<string, string>): Promise<string>;
  /** A resource's text, from the first server that has it. */
  readResource(uri: string): Promise<string | undefined>;
  close(): Promise<void>;
}

const stateSchema = new StateSchema({
  auditLog: new ReducedValue(
    z.array(z.custom<AuditLine>()).default(() => []),
    { reducer: (lines: AuditLine[], added: AuditLine[]) => [...lines, ...added] },
  ),
});

const contextSchema = z.object({ userId: z.string(), userName: z.string() });

function phoneTool(t: Texts) {
  return tool(
    ({ phone }: { phone: string }) => (isPhone(phone) ? t.agent.phoneValid(phone) : t.agent.phoneInvalid(phone)),
    {
      name: "validate_phone",
      description: t.agent.phoneTool,
      schema: z.object({ phone: z.string().describe(t.notification.phone) }),
    },
  );
}

/** Connects the agent to the servers; nothing is opened before the first use. */
export function openDesk({ urls, model, threads, texts: t }: DeskOptions): Desk {
  const headers = { "Accept-Language": t.lang };
  const client = createClient({
    servers: { order: { url: urls.order, headers }, notification: { url: urls.notification, headers } },
    interceptors: [authInject, auditLog],
    elicitation: "interrupt",
    logLevel: "info",
    // the run's stream carries logs and progress; this declares that someone listens
    events: { onLog: () => undefined },
  });
  let reading: { policy?: string; template?: string } = {};
  let built: { key: string; agent: RunnableAgent } | undefined;

  /** The policy and the reply template, read from the notification server once it can be reached. */
  async function readTexts(): Promise<typeof reading> {
    const up = client.servers().find((info) => info.server === "notification")?.health === "up";
    if (up && reading.policy === undefined) {
      const [[policy], messages] = await Promise.all([
        client.readResources("notification", ["company://policies/return"]),
        client.getPrompt("notification", "refund_response", { order_id: "{order_id}", amount: "{amount}" }),
      ]).catch(() => [[], []] as const); // it went away in between: the next turn reads them
      const template = messages.map(({ content }) => (content.type === "text" ? content.text : "")).join("\n");
      if (policy) reading = { policy: policy.asString(), template };
    }
    return reading;
  }

  function systemPrompt({ policy, template }: typeof reading): string {
    const parts = [t.agent.system];
    if (policy !== undefined) parts.push(`## ${t.agent.policyHeading}\n\n${policy.replace(/^# .*\n+/, "")}`);
    if (template !== undefined) parts.push(`## ${t.agent.templateHeading}\n\n${template}`);
    return parts.join("\n\n");
  }

  function build(tools: readonly McpTool[], system: string): RunnableAgent {
    const remote = new Set(tools.map((one) => one.name));
    return createAgent({
      model,
      // the local tool first: createAgent cannot infer the type of a list that begins with a spread
      tools: [phoneTool(t), ...tools],
      systemPrompt: system,
      contextSchema,
      stateSchema,
      checkpointer: threads.checkpointer,
      middleware: [
        mcpMiddleware(),
        // one refund is always reviewed; a batch of small ones and messages are not
        approvals(
          tools,
          {
            ...(remote.has("mcp_order_process_refund") && {
              "order/process_refund": {
                decisions: ["approve", "edit", "reject", "respond"] as const,
                description: (args: Record<string, unknown>) => t.agent.approvalDescription(String(args.order_id)),
              },
            }),
          },
          { derive: false },
        ),
      ],
    }) as unknown as RunnableAgent; // createAgent's generics say more than the driver needs
  }

  return {
    async agent() {
      const tools = await mcpTools<DeskContext>(client);
      const system = systemPrompt(await readTexts());
      const key = JSON.stringify([tools.map((one) => [one.name, one.description, one.schema]), system]);
      if (built?.key !== key) built = { key, agent: build(tools, system) };
      return built.agent;
    },
    servers: () => client.servers(),
    async tools() {
      const remote = await client.listTools();
      return [...remote, { name: "validate_phone", description: t.agent.phoneTool }];
    },
    prompts: () => client.listPrompts(),
    async renderPrompt(prompt, args) {
      const messages = await client.getPrompt(prompt.server, prompt.name, args);
      return messages.map(({ content }) => (content.type === "text" ? content.text : `[${content.type}]`)).join("\n");
    },
    async readResource(uri) {
      for (const server of SERVER_NAMES) {
        const [blob] = await client.readResources(server, [uri]).catch(() => []); // not there: ask the next one
        if (blob) return blob.asString();
      }
      return undefined;
    },
    close: () => client.close(),
  };
}

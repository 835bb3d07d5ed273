import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { tool } from "@langchain/core/tools";
import { ReducedValue, StateSchema } from "@langchain/langgraph";
import { approvals, type McpTool, mcpMiddleware, mcpTools, type RunnableAgent } from "@tenon/agent";
import { type CatalogPrompt, createClient, type ServerInfo } from "@tenon/client";
import { bearer } from "@tenon/client/auth";
import { AuthError } from "@tenon/core";
import { createAgent } from "langchain";
import { z } from "zod";
import { isPhone } from "../phone.ts";
import { TOOL_SCOPES } from "../servers/access.ts";
import { SERVER_NAMES, type ServerName } from "../servers/names.ts";
import type { Texts } from "../texts/index.ts";
import type { AuditTrail } from "./audit.ts";
import { type AuditLine, auditLog, authInject, type DeskContext } from "./interceptors.ts";
import { explainRefusal, isRefusal, onlyFor, sayRefusals, scopesIn } from "./refusals.ts";
import type { Threads } from "./threads.ts";
import { claimsOf, type TokenSource } from "./tokens.ts";

export interface DeskOptions {
  /** Endpoints of the servers. */
  urls: Readonly<Record<ServerName, string>>;
  /** Tokens for the servers; a server without them is asked without. */
  tokens: Readonly<Partial<Record<ServerName, TokenSource>>>;
  /** Who is in front of the desk: what it reads and calls, it reads and calls with this person's tokens. */
  user: DeskContext;
  model: BaseChatModel;
  threads: Threads;
  /** Where every call to a server is written down. */
  audit: AuditTrail;
  texts: Texts;
}

/** What a server does not give right now, in one sentence for a person and a model. */
interface Gap {
  /** It cannot be reached, it refuses the user, or it keeps something from the user. */
  readonly kind: "down" | "refused" | "lacking";
  readonly text: string;
}

/** The agent over both servers, made anew when what the servers offer has changed. */
export interface Desk {
  /** The agent with what can be reached right now; servers that are back are taken in. */
  agent(): Promise<RunnableAgent>;
  readonly user: DeskContext;
  servers(): readonly ServerInfo[];
  /** What is missing since the agent was asked for last, by server. */
  gaps(): ReadonlyMap<ServerName, Gap>;
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
export function openDesk({ urls, tokens, user, model, threads, audit, texts: t }: DeskOptions): Desk {
  const serverOf = (name: ServerName) => {
    const source = tokens[name];
    return {
      url: urls[name],
      headers: { "Accept-Language": t.lang },
      ...(source && { auth: bearer(() => source(user.userId)) }),
    };
  };
  const client = createClient({
    servers: { order: serverOf("order"), notification: serverOf("notification") },
    interceptors: [authInject, auditLog, audit.interceptor, onlyFor(user), sayRefusals(explain)],
    elicitation: "interrupt",
    logLevel: "info",
    // the run's stream carries logs and progress, and the chat says what is missing; this declares that someone listens
    events: { onLog: () => undefined, onServerState: () => undefined },
  });
  let reading: { policy?: string; template?: string } = {};
  /** Why the user may not read them. */
  let unreadable: string | undefined;
  let built: { key: string; agent: RunnableAgent } | undefined;
  let gaps: ReadonlyMap<ServerName, Gap> = new Map();

  /** Why a server refused the user. */
  async function refusal(server: ServerName, code: string, scopes: readonly string[] = []): Promise<string> {
    const token = await tokens[server]?.(user.userId).catch(() => ""); // the error is explained by its code
    const claims = token === undefined ? undefined : claimsOf(token);
    return explainRefusal({ code, scopes, title: t.offline.serverNames[server] ?? server, server, claims }, t);
  }
  function explain(server: string, error: AuthError): Promise<string> {
    return refusal(server as ServerName, error.code, scopesIn(error)); // the client knows no others
  }

  /** What one server does not give, seen from what it offers. */
  async function gapOf(server: ServerName, info: ServerInfo | undefined, tools: readonly McpTool[]) {
    const title = t.offline.serverNames[server] ?? server;
    if (info?.error && isRefusal(info.error.code)) {
      return { kind: "refused", text: await refusal(server, info.error.code) } as const;
    }
    if (info?.health !== "up") return { kind: "down", text: t.offline.unavailable(title) } as const;
    const offered = new Set(tools.map((one) => one.name));
    const hidden = Object.entries(TOOL_SCOPES[server]).filter(([name]) => !offered.has(`mcp_${server}_${name}`));
    if (hidden.length === 0) {
      return server === "notification" && unreadable !== undefined
        ? ({ kind: "lacking", text: unreadable } as const)
        : undefined;
    }
    const scopes = [...new Set(hidden.map(([, scope]) => scope))].join(" ");
    return {
      kind: "lacking",
      text: t.access.hidden(
        title,
        scopes,
        hidden.map(([name]) => name),
      ),
    } as const;
  }

  /** The policy and the reply template, read from the notification server once it can be reached. */
  async function readTexts(): Promise<typeof reading> {
    unreadable = undefined;
    const up = client.servers().find((info) => info.server === "notification")?.health === "up";
    if (up && reading.policy === undefined) {
      const [[policy], messages] = await Promise.all([
        client.readResources("notification", ["company://policies/return"]),
        client.getPrompt("notification", "refund_response", { order_id: "{order_id}", amount: "{amount}" }),
      ]).catch(async (error: unknown) => {
        // else it went away in between: the next turn reads them
        if (error instanceof AuthError) unreadable = await explain("notification", error);
        return [[], []] as const;
      });
      const template = messages.map(({ content }) => (content.type === "text" ? content.text : "")).join("\n");
      if (policy) reading = { policy: policy.asString(), template };
    }
    return reading;
  }

  function systemPrompt({ policy, template }: typeof reading): string {
    const parts = [t.agent.system];
    if (policy !== undefined) parts.push(`## ${t.agent.policyHeading}\n\n${policy.replace(/^# .*\n+/, "")}`);
    if (template !== undefined) parts.push(`## ${t.agent.templateHeading}\n\n${template}`);
    const missing = [...gaps].map(([server, { text }]) => `- ${server}: ${text}`);
    if (missing.length > 0) parts.push(`## ${t.agent.unavailableHeading}\n\n${missing.join("\n")}`);
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
        mcpMiddleware({ client }), // a call that was decided waits while its server cannot be reached
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
          { derive: false, client },
        ),
      ],
    }) as unknown as RunnableAgent; // createAgent's generics say more than the driver needs
  }

  return {
    async agent() {
      const tools = await mcpTools<DeskContext>(client);
      const texts = await readTexts();
      const infos = new Map(client.servers().map((info) => [info.server, info]));
      const found = SERVER_NAMES.map(async (name) => [name, await gapOf(name, infos.get(name), tools)] as const);
      gaps = new Map((await Promise.all(found)).flatMap(([name, gap]) => (gap ? [[name, gap]] : [])));
      const system = systemPrompt(texts);
      const key = JSON.stringify([tools.map((one) => [one.name, one.description, one.schema]), system]);
      if (built?.key !== key) built = { key, agent: build(tools, system) };
      return built.agent;
    },
    user,
    servers: () => client.servers(),
    gaps: () => gaps,
    async tools() {
      const remote = await client.listTools();
      return [...remote, { name: "validate_phone", description: t.agent.phoneTool }];
    },
    prompts: () => client.listPrompts(),
    async renderPrompt(prompt, args) {
      const messages = await client.getPrompt(prompt.server, prompt.name, args).catch(async (error: unknown) => {
        throw error instanceof AuthError ? new Error(await explain(prompt.server, error), { cause: error }) : error;
      });
      return messages.map(({ content }) => (content.type === "text" ? content.text : `[${content.type}]`)).join("\n");
    },
    async readResource(uri) {
      let refused: string | undefined;
      for (const server of SERVER_NAMES) {
        const [blob] = await client.readResources(server, [uri]).catch(async (error: unknown) => {
          if (error instanceof AuthError) refused ??= await explain(server, error);
          return []; // not there: ask the next one
        });
        if (blob) return blob.asString();
      }
      if (refused !== undefined) throw new Error(refused);
      return undefined;
    },
    close: () => client.close(),
  };
}

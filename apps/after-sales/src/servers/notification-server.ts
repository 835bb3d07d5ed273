import { randomUUID } from "node:crypto";
import { cleanText as clean } from "@tenon/core";
import { createServer, type TenonServer, ToolError, text } from "@tenon/server";
import { z } from "zod";
import { noteStateKeys } from "../database/shared-keys.ts";
import { isPhone } from "../phone.ts";
import { textsFor } from "../texts/index.ts";
import { ownCallerOnly, TOOL_SCOPES, textsOf } from "./access.ts";
import type { ServerOptions } from "./options.ts";
import { consoleGateway, createOutbox, type Outbox, webhookGateway } from "./outbox.ts";
import { stateKeysOf } from "./trust.ts";

/** The notification server: text messages, the return policy and the reply template. */
export function createNotificationServer(options: ServerOptions): TenonServer<{ outbox: Outbox }> {
  const own = textsFor(options.lang);
  const log = options.log ?? ((line: string) => void process.stderr.write(`${line}\n`));
  const gateway = options.smsWebhook ? webhookGateway(options.smsWebhook) : consoleGateway((line) => log(clean(line)));
  const stateKeys = stateKeysOf(options.place);
  const shared = options.place.url !== undefined;
  const server = createServer({
    name: "notifications",
    version: "1.0.0",
    logSink: (entry) => log(JSON.stringify(entry)),
    instructions: own.notification.instructions,
    auth: options.auth,
    stateKeys,
    store: options.stores,
    replicas: shared,
    ...(options.allowedHosts && { http: { allowedHosts: options.allowedHosts } }),
    lifespan: async () => {
      await options.database.ready();
      if (shared) await noteStateKeys(options.database, "notification", stateKeys);
      return { value: { outbox: createOutbox(options.database, gateway) } };
    },
  });
  server.use(ownCallerOnly(own));

  server.tool(
    "send_sms",
    {
      description: own.notification.smsTool,
      input: z.object({
        phone: z.string().max(32).describe(own.notification.phone),
        content: z.string().min(1).max(500).describe(own.notification.content),
        caller_id: z.string().max(200).default("").describe(own.order.callerId),
      }),
      annotations: { destructiveHint: false, openWorldHint: true },
      scopes: [TOOL_SCOPES.notification.send_sms],
    },
    async (args, ctx) => {
      const t = textsOf(ctx.headers, own);
      const phone = args.phone.trim();
      if (!isPhone(phone)) throw new ToolError(t.notification.badPhone(phone), { code: "phone" });
      const { message, sent } = await ctx.lifespan.outbox.send(
        { phone, content: args.content },
        { callerId: args.caller_id || (ctx.caller?.subject ?? ""), idempotencyKey: ctx.idempotencyKey ?? randomUUID() },
      );
      if (!sent)
        throw new ToolError(t.notification.failed(message.id), {
          code: "gateway",
          data: { status: "failed", id: message.id },
        });
      return text(t.notification.sent(phone), { status: "sent", id: message.id, phone, content: args.content });
    },
  );

  server.resource(
    "company://policies/return",
    {
      name: "return-policy",
      title: own.notification.policyTitle,
      mimeType: "text/markdown",
      scopes: ["policies:read"],
    },
    (_, ctx) => textsOf(ctx.headers, own).notification.policy,
  );

  server.prompt(
    "refund_response",
    {
      title: own.notification.promptTitle,
      description: own.notification.promptTitle,
      scopes: ["policies:read"],
      input: z.object({
        order_id: z.string().max(64).describe(own.notification.promptOrderId),
        amount: z.string().max(32).describe(own.notification.promptAmount),
      }),
    },
    ({ order_id, amount }, ctx) => textsOf(ctx.headers, own).notification.reply(order_id, amount),
  );
  return server;
}

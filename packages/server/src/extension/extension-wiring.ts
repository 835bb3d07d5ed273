import type { Server, ServerContext, StandardSchemaV1 } from "@modelcontextprotocol/server";
import { type Era, isRecord } from "@tenon/core";
import { type Service, throughMiddleware } from "../dispatch/dispatch.ts";
import { traced } from "../dispatch/traced.ts";
import type { Exchange } from "../handler/context.ts";

/** Lets everything through: an extension's own schema is checked where its method is run. */
const ANY_PARAMS: StandardSchemaV1<Record<string, unknown>> = {
  "~standard": { version: 1, vendor: "tenon", validate: (value) => ({ value: isRecord(value) ? value : {} }) },
};

/**
 * Puts the extensions of a service into one protocol instance: capabilities, methods of its era, and word of the session.
 * @param exchangeOf what a request of this instance looks like to a handler
 */
export function wireExtensions(
  server: Server,
  service: Service,
  era: Era,
  exchangeOf: (ctx: ServerContext) => Exchange,
): void {
  const { extensions, lifespan } = service;
  const capabilities = extensions.capabilities(era);
  if (capabilities) server.registerCapabilities({ extensions: capabilities });
  for (const method of extensions.methods(era)) {
    server.setRequestHandler(method, { params: ANY_PARAMS }, (params, ctx) => {
      const exchange = exchangeOf(ctx);
      service.contract?.admit(method, exchange);
      // an extension's method is a request like any other: who may not ask, may not ask this way
      return traced(service, method, params, exchange, () =>
        throughMiddleware(service, method, params, exchange, (given) =>
          extensions.call(method, given, exchange, lifespan),
        ),
      );
    });
  }
  if (era !== "legacy" || !capabilities) return;
  server.oninitialized = () => {
    const info = server.getClientVersion();
    const client = { name: info?.name, version: info?.version, capabilities: server.getClientCapabilities() ?? {} };
    extensions.connected({ era, client, sessionId: server.transport?.sessionId });
  };
}

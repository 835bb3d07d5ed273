import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A span as it came over OTLP. */
export interface SentSpan {
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** 2: an error. */
  readonly status: number;
  readonly links: readonly string[];
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}
interface WireSpan extends Pick<SentSpan, "name" | "traceId" | "spanId" | "kind"> {
  readonly parentSpanId?: string;
  readonly attributes?: readonly Attribute[];
  readonly status: { readonly code?: number; readonly message?: string };
  readonly links?: readonly { readonly traceId: string }[];
}
interface Sent {
  readonly resourceSpans?: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}

const valuesOf = (attributes: readonly Attribute[] = []): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

/** Takes what programs send over OTLP (JSON), as a collector does. */
export async function startCollector() {
  const spans: SentSpan[] = [];
  /** What spans say of how they failed. */
  const messages: string[] = [];
  const headers: Record<string, unknown>[] = [];
  const waiting = new Set<() => void>();
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    headers.push(request.headers);
    const { resourceSpans = [] } = JSON.parse(body) as Sent;
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = String(valuesOf(resource.attributes)["service.name"]);
      for (const span of scopeSpans.flatMap(({ spans }) => spans)) {
        const { name, traceId, spanId, kind, parentSpanId = "", attributes, status, links = [] } = span;
        if (status.message !== undefined) messages.push(status.message);
        const linked = links.map((link) => link.traceId);
        const about = { attributes: valuesOf(attributes), status: status.code ?? 0, links: linked };
        spans.push({ service, name, traceId, spanId, kind, parentSpanId, ...about });
      }
    }
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
    for (const wake of waiting) wake();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    messages,
    headers,
    /** The first span that fits, once it is there. */
    async span(fits: (span: SentSpan) => boolean): Promise<SentSpan> {
      for (;;) {
        const found = spans.find(fits);
        if (found) return found;
        await new Promise<void>((resolve, reject) => {
          const timer = setTimeout(
            () =>
              reject(
                new Error(
                  `no such span; there are ${spans.map(({ service, name }) => `${service}: ${name}`).join(", ")}`,
                ),
              ),
            15_000,
          );
          const wake = (): void => {
            clearTimeout(timer);
            waiting.delete(wake);
            resolve();
          };
          waiting.add(wake);
        });
      }
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
export type Collector = Awaited<ReturnType<typeof startCollector>>;

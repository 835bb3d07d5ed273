/** Seconds a browser may keep the answer to its question. */
const MAX_AGE_SECONDS = 600;
const METHODS = "POST, GET, DELETE";
/** What a page may read besides the body. */
const READABLE = "Mcp-Session-Id, WWW-Authenticate, Retry-After";

/** Answers a browser's question whether a page may call (Fetch standard, CORS preflight). */
export function preflight(request: Request, origin: string): Response {
  // the headers of a call name its arguments too (`Mcp-Param-…`), so what the page wants to send is what it may send
  const wanted = request.headers.get("access-control-request-headers");
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-origin": origin,
      "access-control-allow-methods": METHODS,
      ...(wanted !== null && { "access-control-allow-headers": wanted }),
      "access-control-max-age": String(MAX_AGE_SECONDS),
      vary: "Origin, Access-Control-Request-Headers",
    },
  });
}

/** Lets the page of an allowed origin read a response. */
export function readableBy(origin: string, response: Response): Response {
  const headers = new Headers(response.headers);
  headers.set("access-control-allow-origin", origin);
  headers.set("access-control-expose-headers", READABLE);
  headers.append("vary", "Origin");
  return new Response(response.body, { status: response.status, headers });
}

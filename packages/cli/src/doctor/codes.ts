/** Where in the way from here to a server's tools something is wrong; the order is the order of the checks. */
export type Layer = "process" | "network" | "http" | "protocol" | "auth" | "contract" | "tools";

/** What `tenon doctor` ends with when the first error lies in a layer. 0, 1 and 2 are those of every command. */
export const LAYER_EXIT: Readonly<Record<Layer, number>> = {
  network: 3,
  http: 4,
  protocol: 5,
  auth: 6,
  contract: 7,
  tools: 8,
  process: 9,
};

/** How bad a finding is: an error keeps clients from working, a warning may, an info is worth knowing. */
export type Severity = "error" | "warning" | "info";

interface CodeInfo {
  readonly layer: Layer;
  readonly severity: Severity;
  readonly cause: string;
  /** What to do, where the place that finds it knows nothing better. */
  readonly fix: string;
}

/** Every code of a finding, with its cause and what to do. Codes are stable; texts may get better. */
export const CODES = {
  // network
  dns_failed: {
    layer: "network",
    severity: "error",
    cause: "the host name has no address",
    fix: "correct the host name; on a private network, connect to it (VPN) first",
  },
  refused: {
    layer: "network",
    severity: "error",
    cause: "nothing listens at this address and port",
    fix: "start the server, or correct host and port",
  },
  unreachable_host: {
    layer: "network",
    severity: "error",
    cause: "no way leads to this host",
    fix: "check the network, the VPN and the firewall",
  },
  connect_timeout: {
    layer: "network",
    severity: "error",
    cause: "the host does not answer the connection",
    fix: "check host and port; a firewall that drops packets looks like this",
  },
  proxy_unreachable: {
    layer: "network",
    severity: "error",
    cause: "the proxy cannot be reached",
    fix: "correct HTTPS_PROXY or HTTP_PROXY, or name the host in NO_PROXY",
  },
  proxy_refused: {
    layer: "network",
    severity: "error",
    cause: "the proxy does not let the request through",
    fix: "name the host in NO_PROXY, or have the proxy allow it",
  },
  proxy_html: {
    layer: "network",
    severity: "error",
    cause: "the proxy answers with a page of its own",
    fix: "sign in to the network, name the host in NO_PROXY, or have the proxy allow it",
  },
  tls_untrusted: {
    layer: "network",
    severity: "error",
    cause: "no authority that this client trusts vouches for the certificate",
    fix: "give the authority's certificate as `ca` (PEM text) or NODE_EXTRA_CA_CERTS; send the whole chain",
  },
  tls_expired: {
    layer: "network",
    severity: "error",
    cause: "the certificate is not valid today",
    fix: "renew the certificate; if it is new, check both clocks",
  },
  tls_wrong_host: {
    layer: "network",
    severity: "error",
    cause: "the certificate is for another host name",
    fix: "use a name that the certificate has, or get one for this name",
  },
  tls_failed: {
    layer: "network",
    severity: "error",
    cause: "the TLS handshake fails",
    fix: "check the server's TLS versions and whether it wants a client certificate",
  },
  https_on_http_port: {
    layer: "network",
    severity: "error",
    cause: "the address says https, the port speaks plain http",
    fix: "write http:// or switch TLS on at the server",
  },
  http_on_tls_port: {
    layer: "network",
    severity: "error",
    cause: "the address says http, the port speaks TLS",
    fix: "write https://",
  },
  // http
  not_http: {
    layer: "http",
    severity: "error",
    cause: "what answers at this port is no HTTP server",
    fix: "correct the port",
  },
  closed_without_answer: {
    layer: "http",
    severity: "error",
    cause: "the connection is closed without an answer",
    fix: "look into the server's log: it fails on, or refuses, this request",
  },
  no_answer: {
    layer: "http",
    severity: "error",
    cause: "the server takes the request and stays silent",
    fix: "look into the server's log; it may hang, or wait for something itself",
  },
  endless_answer: {
    layer: "http",
    severity: "error",
    cause: "the answer begins and never comes to an end",
    fix: "have the server end its answer; proxies must not hold streams back",
  },
  too_large: {
    layer: "http",
    severity: "error",
    cause: "one answer is larger than clients take",
    fix: "have the server page its lists",
  },
  redirect: {
    layer: "http",
    severity: "error",
    cause: "the server sends the client to another address",
    fix: "configure the address it names, if it is the server you mean",
  },
  redirect_followed: {
    layer: "http",
    severity: "warning",
    cause: "the server sends the client to another path",
    fix: "configure the address it names: not every client follows",
  },
  wrong_path: {
    layer: "http",
    severity: "error",
    cause: "there is no MCP endpoint at this path",
    fix: "correct the path; most servers use /mcp",
  },
  wrong_method: {
    layer: "http",
    severity: "error",
    cause: "this path takes no POST",
    fix: "correct the path, or let POST through at the server and its proxies",
  },
  content_type_refused: {
    layer: "http",
    severity: "error",
    cause: "the server takes no application/json",
    fix: "have the endpoint take Content-Type: application/json",
  },
  not_acceptable: {
    layer: "http",
    severity: "error",
    cause: "the server refuses the Accept header of MCP clients",
    fix: "have it take Accept: application/json, text/event-stream",
  },
  wrong_content_type: {
    layer: "http",
    severity: "error",
    cause: "the answer's Content-Type hides that it is JSON-RPC",
    fix: "answer with application/json or text/event-stream",
  },
  html_page: {
    layer: "http",
    severity: "error",
    cause: "the address is a web page, not an MCP endpoint",
    fix: "use the address of the endpoint; most servers use /mcp",
  },
  rate_limited: {
    layer: "http",
    severity: "error",
    cause: "the server asks for fewer requests",
    fix: "wait, then try again; raise the limit if the server is yours",
  },
  server_error: {
    layer: "http",
    severity: "error",
    cause: "the server, or what stands before it, fails",
    fix: "look into its log; 502 to 504 come from a gateway whose server is down",
  },
  http_refused: {
    layer: "http",
    severity: "error",
    cause: "the server refuses the request",
    fix: "look into the server's log",
  },
  slow_answer: {
    layer: "http",
    severity: "warning",
    cause: "the server takes long to answer",
    fix: "clients give up after about 5 s: make it faster, or raise connectTimeoutMs",
  },
  // protocol
  not_jsonrpc: {
    layer: "protocol",
    severity: "error",
    cause: "the answer is not JSON-RPC",
    fix: "correct the address: something else than an MCP server answers here",
  },
  empty_answer: {
    layer: "protocol",
    severity: "error",
    cause: "the request ends without an answer",
    fix: "have the server answer every request on the response it came with",
  },
  not_mcp: {
    layer: "protocol",
    severity: "error",
    cause: "it speaks JSON-RPC and knows no MCP",
    fix: "correct the address: another JSON-RPC service answers here",
  },
  version_mismatch: {
    layer: "protocol",
    severity: "error",
    cause: "client and server share no protocol revision",
    fix: "update the older side",
  },
  handshake_refused: {
    layer: "protocol",
    severity: "error",
    cause: "the server refuses the handshake",
    fix: "its message says what it wants; look into its log",
  },
  sse_only: {
    layer: "protocol",
    severity: "warning",
    cause: "the server only speaks HTTP+SSE of 2024",
    fix: "update it to Streamable HTTP: clients are giving this transport up",
  },
  list_failed: {
    layer: "protocol",
    severity: "error",
    cause: "the server does not answer its list of tools",
    fix: "look into the server's log",
  },
  drift: {
    layer: "protocol",
    severity: "error",
    cause: "the server announces what it does not have",
    fix: "announce only what is implemented, or implement it",
  },
  // auth
  auth_required: {
    layer: "auth",
    severity: "error",
    cause: "the server wants a token, and none was sent",
    fix: "give one: --token-env NAME, or `auth` in the configuration",
  },
  auth_no_metadata: {
    layer: "auth",
    severity: "error",
    cause: "the server wants a token and does not say from whom",
    fix: "send one it knows (--token-env); the server should name its resource metadata (RFC 9728)",
  },
  auth_credential: {
    layer: "auth",
    severity: "error",
    cause: "no token could be had with the configured `auth`",
    fix: "check the `auth` of this server in the configuration",
  },
  auth_token_expired: { layer: "auth", severity: "error", cause: "the token has ended", fix: "get a new one" },
  auth_wrong_audience: {
    layer: "auth",
    severity: "error",
    cause: "the token was issued for another server",
    fix: "get one whose audience is this server",
  },
  auth_token_refused: {
    layer: "auth",
    severity: "error",
    cause: "the server does not take this token",
    fix: "check issuer, signature and whether it was revoked",
  },
  auth_scope: {
    layer: "auth",
    severity: "error",
    cause: "the token lacks a scope",
    fix: "get a token with the scopes it names",
  },
  auth_forbidden: {
    layer: "auth",
    severity: "error",
    cause: "the server refuses this caller, Host or Origin",
    fix: "use a credential with more rights; check the server's allowed hosts and origins",
  },
  // contract
  contract_missing: {
    layer: "contract",
    severity: "error",
    cause: "the server declares no contract, and keys are given for one",
    fix: "switch the contract on at the server, or give no keys for this one",
  },
  contract_malformed: {
    layer: "contract",
    severity: "error",
    cause: "the server's contract cannot be read",
    fix: "correct the field at the server",
  },
  contract_version: {
    layer: "contract",
    severity: "error",
    cause: "client and server share no version of the contract",
    fix: "update the older side",
  },
  contract_unsigned: {
    layer: "contract",
    severity: "error",
    cause: "the contract is not signed",
    fix: "give the server its keys (TENON_CONTRACT_KEYS)",
  },
  contract_unknown_key: {
    layer: "contract",
    severity: "error",
    cause: "the contract is signed with a key that is not here",
    fix: "give this side the server's present and next key",
  },
  contract_wrong_algorithm: {
    layer: "contract",
    severity: "error",
    cause: "the contract's key is here with another algorithm",
    fix: "give both sides the same key",
  },
  contract_invalid: {
    layer: "contract",
    severity: "error",
    cause: "the contract's signature is wrong",
    fix: "it was changed on the way or signed with another key: compare keys, look at what stands in between",
  },
  contract_expired: {
    layer: "contract",
    severity: "error",
    cause: "the contract's time is over",
    fix: "restart the server or rotate its keys; check both clocks",
  },
  contract_schema: {
    layer: "contract",
    severity: "error",
    cause: "the contract's context schema cannot be used",
    fix: "correct the schema at the server",
  },
  contract_drift: {
    layer: "contract",
    severity: "error",
    cause: "the contract promises what the server does not have",
    fix: "take it out of the contract's capabilities, or implement it",
  },
  context_missing_field: {
    layer: "contract",
    severity: "error",
    cause: "the context lacks a field that the contract requires",
    fix: "send the field with every request",
  },
  context_invalid: {
    layer: "contract",
    severity: "error",
    cause: "the context does not fit the contract",
    fix: "correct the value",
  },
  context_needed: {
    layer: "contract",
    severity: "info",
    cause: "calls need a context",
    fix: "check yours with --context",
  },
  // tools
  paging_loop: {
    layer: "tools",
    severity: "error",
    cause: "the list of tools never ends",
    fix: "give every page another cursor, and the last one none",
  },
  tool_malformed: {
    layer: "tools",
    severity: "error",
    cause: "a tool's definition cannot be read",
    fix: "give every tool a name and an object as definition",
  },
  tool_duplicate: { layer: "tools", severity: "error", cause: "two tools have one name", fix: "rename one of them" },
  tool_name: {
    layer: "tools",
    severity: "warning",
    cause: "a tool's name is outside what clients take",
    fix: "use 1 to 128 of A-Z a-z 0-9 _ - .",
  },
  tool_name_mapped: {
    layer: "tools",
    severity: "info",
    cause: "models see a tool under a changed name",
    fix: "models take up to 64 of A-Z a-z 0-9 _ - with the server's name in front",
  },
  tool_collision: {
    layer: "tools",
    severity: "warning",
    cause: "two servers of the configuration have a tool of one name",
    fix: 'use naming "prefixed" (the default), or exclude one',
  },
  schema_missing: {
    layer: "tools",
    severity: "error",
    cause: "a tool has no inputSchema",
    fix: 'give it one; without arguments: { "type": "object" }',
  },
  schema_root: {
    layer: "tools",
    severity: "error",
    cause: "a tool's schema is not an object at its root",
    fix: 'have the inputSchema begin with "type": "object"',
  },
  schema_remote_ref: {
    layer: "tools",
    severity: "error",
    cause: "a tool's schema refers to another document",
    fix: "copy what is referred to into $defs: clients fetch nothing",
  },
  schema_invalid: {
    layer: "tools",
    severity: "error",
    cause: "a tool's schema is not valid JSON Schema",
    fix: "correct the schema",
  },
  // process
  command_not_found: {
    layer: "process",
    severity: "error",
    cause: "there is no such program",
    fix: "give its full path, or install it: the child sees this PATH",
  },
  command_not_executable: {
    layer: "process",
    severity: "error",
    cause: "the program may not be executed",
    fix: "chmod +x it, or start it with its interpreter (node, python)",
  },
  folder_missing: {
    layer: "process",
    severity: "error",
    cause: "the folder to start in is not there",
    fix: "correct `cwd`",
  },
  exited: {
    layer: "process",
    severity: "error",
    cause: "the process ends before it answers",
    fix: "its last words say why; it gets PATH, HOME, the locale and `env` only",
  },
  stdout_noise: {
    layer: "process",
    severity: "error",
    cause: "the process writes to stdout what is no message",
    fix: "log to stderr: stdout belongs to the protocol",
  },
  process_silent: {
    layer: "process",
    severity: "error",
    cause: "the process runs and does not answer",
    fix: "check that it serves MCP over stdio; if it only starts slowly, raise --timeout-ms and connectTimeoutMs",
  },
  slow_start: {
    layer: "process",
    severity: "warning",
    cause: "the process takes long to start",
    fix: "clients give up after about 5 s: start it without npx/uvx downloads, or raise connectTimeoutMs",
  },
  transport_unknown: {
    layer: "process",
    severity: "error",
    cause: "the server is reached by neither address nor command",
    fix: "give it a url or a command",
  },
} as const satisfies Readonly<Record<string, CodeInfo>>;

/** A code of a finding. */
export type Code = keyof typeof CODES;

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

type Entry = readonly [cause: string, fix: string, severity?: Severity];

function inLayer<K extends string>(layer: Layer, entries: Readonly<Record<K, Entry>>): Readonly<Record<K, CodeInfo>> {
  const all = Object.entries<Entry>(entries).map(([code, [cause, fix, severity = "error"]]) => [
    code,
    { layer, severity, cause, fix },
  ]);
  return Object.fromEntries(all) as Record<K, CodeInfo>; // the same keys
}

const NETWORK = inLayer("network", {
  dns_failed: [
    "the host name has no address",
    "correct the host name; on a private network, connect to it (VPN) first",
  ],
  refused: ["nothing listens at this address and port", "start the server, or correct host and port"],
  unreachable_host: ["no way leads to this host", "check the network, the VPN and the firewall"],
  connect_timeout: [
    "the host does not answer the connection",
    "check host and port; a firewall that drops packets looks like this",
  ],
  proxy_unreachable: ["the proxy cannot be reached", "correct HTTPS_PROXY or HTTP_PROXY, or name the host in NO_PROXY"],
  proxy_refused: [
    "the proxy does not let the request through",
    "name the host in NO_PROXY, or have the proxy allow it",
  ],
  proxy_html: [
    "the proxy answers with a page of its own",
    "sign in to the network, name the host in NO_PROXY, or have the proxy allow it",
  ],
  tls_untrusted: [
    "no authority that this client trusts vouches for the certificate",
    "give the authority's certificate as `ca` (PEM text) or NODE_EXTRA_CA_CERTS; send the whole chain",
  ],
  tls_expired: ["the certificate is not valid today", "renew the certificate; if it is new, check both clocks"],
  tls_wrong_host: [
    "the certificate is for another host name",
    "use a name that the certificate has, or get one for this name",
  ],
  tls_failed: ["the TLS handshake fails", "check the server's TLS versions and whether it wants a client certificate"],
  https_on_http_port: [
    "the address says https, the port speaks plain http",
    "write http:// or switch TLS on at the server",
  ],
  http_on_tls_port: ["the address says http, the port speaks TLS", "write https://"],
});

const HTTP = inLayer("http", {
  not_http: ["what answers at this port is no HTTP server", "correct the port"],
  closed_without_answer: [
    "the connection is closed without an answer",
    "look into the server's log: it fails on, or refuses, this request",
  ],
  no_answer: [
    "the server takes the request and stays silent",
    "look into the server's log; it may hang, or wait for something itself",
  ],
  endless_answer: [
    "the answer begins and never comes to an end",
    "have the server end its answer; proxies must not hold streams back",
  ],
  too_large: ["one answer is larger than clients take", "have the server page its lists"],
  redirect: [
    "the server sends the client to another address",
    "configure the address it names, if it is the server you mean",
  ],
  redirect_followed: [
    "the server sends the client to another path",
    "configure the address it names: not every client follows",
    "warning",
  ],
  wrong_path: ["there is no MCP endpoint at this path", "correct the path; most servers use /mcp"],
  wrong_method: ["this path takes no POST", "correct the path, or let POST through at the server and its proxies"],
  content_type_refused: [
    "the server takes no application/json",
    "have the endpoint take Content-Type: application/json",
  ],
  not_acceptable: [
    "the server refuses the Accept header of MCP clients",
    "have it take Accept: application/json, text/event-stream",
  ],
  wrong_content_type: [
    "the answer's Content-Type hides that it is JSON-RPC",
    "answer with application/json or text/event-stream",
  ],
  html_page: [
    "the address is a web page, not an MCP endpoint",
    "use the address of the endpoint; most servers use /mcp",
  ],
  rate_limited: ["the server asks for fewer requests", "wait, then try again; raise the limit if the server is yours"],
  server_error: [
    "the server, or what stands before it, fails",
    "look into its log; 502 to 504 come from a gateway whose server is down",
  ],
  http_refused: ["the server refuses the request", "look into the server's log"],
  slow_answer: [
    "the server takes long to answer",
    "clients give up after about 5 s: make it faster, or raise connectTimeoutMs",
    "warning",
  ],
});

const PROTOCOL = inLayer("protocol", {
  not_jsonrpc: ["the answer is not JSON-RPC", "correct the address: something else than an MCP server answers here"],
  empty_answer: [
    "the request ends without an answer",
    "have the server answer every request on the response it came with",
  ],
  not_mcp: ["it speaks JSON-RPC and knows no MCP", "correct the address: another JSON-RPC service answers here"],
  version_mismatch: ["client and server share no protocol revision", "update the older side"],
  wrong_id: [
    "the answers are for other requests: their ids are not those that were asked with",
    "have the server give back each request's id as it came, of the same type",
  ],
  headers_lost: [
    "the headers of MCP do not arrive at the server",
    "have every proxy in between pass MCP-Protocol-Version, Mcp-Method, Mcp-Name and Mcp-Session-Id on",
    "warning",
  ],
  handshake_refused: ["the server refuses the handshake", "its message says what it wants; look into its log"],
  sse_only: [
    "the server only speaks HTTP+SSE of 2024",
    "update it to Streamable HTTP: clients are giving this transport up",
    "warning",
  ],
  list_failed: ["the server does not answer its list of tools", "look into the server's log"],
  drift: ["the server announces what it does not have", "announce only what is implemented, or implement it"],
});

const AUTH = inLayer("auth", {
  auth_required: [
    "the server wants a token, and none was sent",
    "give one: --token-env NAME, or `auth` in the configuration",
  ],
  auth_no_metadata: [
    "the server wants a token and does not say from whom",
    "send one it knows (--token-env); the server should name its resource metadata (RFC 9728)",
  ],
  auth_credential: [
    "no token could be had with the configured `auth`",
    "check the `auth` of this server in the configuration",
  ],
  auth_token_expired: ["the token has ended", "get a new one"],
  auth_wrong_audience: ["the token was issued for another server", "get one whose audience is this server"],
  auth_token_refused: ["the server does not take this token", "check issuer, signature and whether it was revoked"],
  auth_scope: ["the token lacks a scope", "get a token with the scopes it names"],
  auth_forbidden: [
    "the server refuses this caller, Host or Origin",
    "use a credential with more rights; check the server's allowed hosts and origins",
  ],
});

const CONTRACT = inLayer("contract", {
  contract_missing: [
    "the server declares no contract, and keys are given for one",
    "switch the contract on at the server, or give no keys for this one",
  ],
  contract_malformed: ["the server's contract cannot be read", "correct the field at the server"],
  contract_version: ["client and server share no version of the contract", "update the older side"],
  contract_unsigned: ["the contract is not signed", "give the server its keys (TENON_CONTRACT_KEYS)"],
  contract_unknown_key: [
    "the contract is signed with a key that is not here",
    "give this side the server's present and next key",
  ],
  contract_wrong_algorithm: ["the contract's key is here with another algorithm", "give both sides the same key"],
  contract_invalid: [
    "the contract's signature is wrong",
    "it was changed on the way or signed with another key: compare keys, look at what stands in between",
  ],
  contract_expired: ["the contract's time is over", "restart the server or rotate its keys; check both clocks"],
  contract_schema: ["the contract's context schema cannot be used", "correct the schema at the server"],
  contract_drift: [
    "the contract promises what the server does not have",
    "take it out of the contract's capabilities, or implement it",
  ],
  contract_conflict: [
    "client and server want other types of a context field",
    "bring `contract.schema` of the configuration and the server's schema together",
  ],
  context_missing_field: ["the context lacks a field that the contract requires", "send the field with every request"],
  context_invalid: ["the context does not fit the contract", "correct the value"],
  context_needed: ["calls need a context", "check yours with --context", "info"],
});

const TOOLS = inLayer("tools", {
  paging_loop: ["the list of tools never ends", "give every page another cursor, and the last one none"],
  tool_malformed: ["a tool's definition cannot be read", "give every tool a name and an object as definition"],
  tool_duplicate: ["two tools have one name", "rename one of them"],
  tool_name: ["a tool's name is outside what clients take", "use 1 to 128 of A-Z a-z 0-9 _ - .", "warning"],
  tool_name_mapped: [
    "models see a tool under a changed name",
    "models take up to 64 of A-Z a-z 0-9 _ - with the server's name in front",
    "info",
  ],
  tool_collision: [
    "two servers of the configuration have a tool of one name",
    "models see both, with the server's name in front; whoever calls one without it must name the server, or exclude one",
    "warning",
  ],
  replica_drift: [
    "replicas of one server have different tools",
    "bring them to one version; while an upgrade runs this passes",
    "warning",
  ],
  schema_missing: ["a tool has no inputSchema", 'give it one; without arguments: { "type": "object" }'],
  schema_root: ["a tool's schema is not an object at its root", 'have the inputSchema begin with "type": "object"'],
  schema_remote_ref: [
    "a tool's schema refers to another document",
    "copy what is referred to into $defs: clients fetch nothing",
  ],
  schema_invalid: ["a tool's schema is not valid JSON Schema", "correct the schema"],
});

const PROCESS = inLayer("process", {
  command_not_found: ["there is no such program", "give its full path, or install it: the child sees this PATH"],
  command_not_executable: [
    "the program may not be executed",
    "chmod +x it, or start it with its interpreter (node, python)",
  ],
  folder_missing: ["the folder to start in is not there", "correct `cwd`"],
  exited: [
    "the process ends before it answers",
    "its last words say why; it gets PATH, HOME, the locale and `env` only",
  ],
  stdout_noise: ["the process writes to stdout what is no message", "log to stderr: stdout belongs to the protocol"],
  process_silent: [
    "the process runs and does not answer",
    "check that it serves MCP over stdio; if it only starts slowly, raise --timeout-ms and connectTimeoutMs",
  ],
  slow_start: [
    "the process takes long to start",
    "clients give up after about 5 s: start it without npx/uvx downloads, or raise connectTimeoutMs",
    "warning",
  ],
  transport_unknown: ["the server is reached by neither address nor command", "give it a url or a command"],
});

/** Every code of a finding, with its cause and what to do. Codes are stable; texts may get better. */
export const CODES = { ...NETWORK, ...HTTP, ...PROTOCOL, ...AUTH, ...CONTRACT, ...TOOLS, ...PROCESS };

/** A code of a finding. */
export type Code = keyof typeof CODES;

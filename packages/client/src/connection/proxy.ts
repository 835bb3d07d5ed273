type Environment = Readonly<Record<string, string | undefined>>;

function excluded({ hostname, port, protocol }: URL, list: string): boolean {
  const host = hostname.toLowerCase();
  const actual = port || (protocol === "https:" ? "443" : "80");
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean)
    .some((entry) => {
      if (entry === "*") return true;
      const [, name = "", wanted] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? [];
      if (wanted !== undefined && wanted !== actual) return false;
      const domain = name.replace(/^\*?\.?/, "");
      return host === domain || host.endsWith(`.${domain}`);
    });
}

/**
 * The proxy for an address according to `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`; lower case names win. `NO_PROXY` holds
 * host names, each with all names below it, optionally with a port.
 *
 * @example proxyFor(new URL("https://a.example/mcp"), { HTTPS_PROXY: "http://proxy:3128", NO_PROXY: "b.example" })
 */
export function proxyFor(url: URL, env: Environment): string | undefined {
  const read = (name: string) => env[name] ?? env[name.toUpperCase()];
  const proxy = read(url.protocol === "https:" ? "https_proxy" : "http_proxy")?.trim();
  if (!proxy || excluded(url, read("no_proxy") ?? "")) return undefined;
  return proxy.includes("://") ? proxy : `http://${proxy}`;
}

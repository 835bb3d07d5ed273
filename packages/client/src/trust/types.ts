/** What one server is allowed at all, whatever it offers. `*` in a pattern stands for any text. */
export interface Grants {
  /** Tools that may be listed and called, by wire name: `["query_*"]`. Left out: all. */
  readonly tools?: readonly string[];
  /** Resources that may be listed and read, by URI: `["company://policies/*"]`. Left out: all. */
  readonly resources?: readonly string[];
  /**
   * What granted tools may do, by their annotations. Left out: anything. A tool without annotations counts as the protocol says:
   * it writes, destroys and reaches the outside world.
   */
  readonly effects?: readonly Effect[];
}

/** `readOnly`: changes nothing; `write`: adds or changes; `destructive`: deletes or overwrites; `openWorld`: reaches outside. */
export type Effect = "readOnly" | "write" | "destructive" | "openWorld";

/** What the configuration of any server may say about trust, and how long it may take. */
export interface ServerTrust {
  /** Where a url question may send a person: `["pay.example.com", "*.example.com"]`. Left out: any https host. */
  expectHosts?: readonly string[];
  /** What the server is allowed at all, whatever it offers. Default: everything. */
  grants?: Grants;
  /** Milliseconds without an answer or progress until a call of this server fails, unless the call says otherwise. Default 60,000. */
  timeoutMs?: number;
}

/** The site behind a url question, as a person should see it. */
export interface UrlHost {
  /** Host and port with Punycode decoded: `münchen.example`. */
  readonly display: string;
  /** The same as it goes over the wire: `xn--mnchen-3ya.example`. Differs from `display` when the name is not ASCII. */
  readonly punycode: string;
  /** True when one part of the name mixes alphabets, as imitations of known names do (`pаypal` with a Cyrillic а). */
  readonly mixedScripts: boolean;
}

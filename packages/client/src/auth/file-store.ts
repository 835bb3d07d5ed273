import { mkdir, open } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { ConfigError, codeOf, isRecord, messageOf, TenonError } from "@tenon/core";
import { digest } from "@tenon/core/internal";
import { exclusively, replaceFile } from "../file-lock.ts";
import { createQueues, type TokenStore } from "./store.ts";

const MAX_BYTES = 4 * 1024 * 1024;
/** Milliseconds one process waits while another renews a token: as long as that may take. */
const WAIT_MS = 45_000;

function bad(path: string, why: string, cause?: unknown): ConfigError {
  return new ConfigError(`the token store ${path} ${why}`, {
    code: "bad_token_store",
    data: { path },
    ...(cause !== undefined && { cause }),
  });
}

/** Refuses a file that others may read: what is in it may be known already. */
function checkOwner(path: string, { mode, uid }: { mode: number; uid: number }): void {
  if (process.platform === "win32") return;
  if ((mode & 0o077) !== 0) {
    const shown = (mode & 0o777).toString(8).padStart(4, "0");
    throw bad(
      path,
      `has mode ${shown}: others can read the tokens in it. If nobody else has been on this machine, run ` +
        `chmod 600 ${path}; otherwise delete it and sign in again`,
    );
  }
  const me = process.getuid?.();
  if (me !== undefined && me !== 0 && uid !== me) {
    throw bad(path, `belongs to user ${uid}, not to the one this program runs as (${me}); use a file of your own`);
  }
}

async function readEntries(path: string): Promise<Record<string, unknown>> {
  let text: string;
  try {
    const file = await open(path, "r");
    try {
      const found = await file.stat();
      checkOwner(path, found);
      if (found.size > MAX_BYTES) throw bad(path, `is larger than ${MAX_BYTES} bytes; delete it and sign in again`);
      text = await file.readFile("utf8");
    } finally {
      await file.close();
    }
  } catch (error) {
    if (codeOf(error) === "ENOENT") return {};
    if (error instanceof TenonError) throw error;
    throw bad(path, `cannot be read: ${messageOf(error)}`, error);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined; // the parser's message repeats what stands there
  }
  if (!isRecord(value) || value.version !== 1 || !isRecord(value.entries)) {
    throw bad(path, "is damaged or of another version; delete it and sign in again");
  }
  return value.entries;
}

/**
 * Keeps tokens in a file that only its owner can read (mode 0600, a new folder 0700). Several processes may share it: it is
 * replaced as a whole, and a token is renewed by one of them.
 *
 * @param path is made when the first token is kept
 * @throws ConfigError `bad_token_store` (from its methods) for a file that others can read, that is damaged or cannot be used;
 *   ConnectionError `lock_busy`
 * @example oauth({ store: fileTokenStore(join(homedir(), ".config/my-program/tokens.json")) })
 */
export function fileTokenStore(path: string): TokenStore {
  if (typeof path !== "string" || path === "") {
    throw new ConfigError("fileTokenStore(path) needs the path of a file", { code: "invalid_option" });
  }
  const file = resolve(path);
  const queue = createQueues();
  const guarded = async <T>(work: () => Promise<T>, suffix: string): Promise<T> => {
    try {
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      return await exclusively(file, work, { suffix, waitMs: WAIT_MS });
    } catch (error) {
      if (error instanceof TenonError || codeOf(error) === undefined) throw error;
      throw bad(file, `cannot be written: ${messageOf(error)}`, error);
    }
  };
  const write = (key: string, value: unknown) =>
    guarded(async () => {
      const { [key]: _old, ...others } = await readEntries(file);
      const entries = value === undefined ? others : { ...others, [key]: value };
      await replaceFile(file, `${JSON.stringify({ version: 1, entries }, null, 2)}\n`, 0o600);
    }, ".lock");
  return {
    durable: true,
    get: async (key) => {
      const entries = await readEntries(file);
      return Object.hasOwn(entries, key) ? entries[key] : undefined;
    },
    set: (key, value) => queue("", () => write(key, value)),
    // within the process first, so that its own calls do not wait for a file
    exclusively: (key, work) => queue(`key ${key}`, () => guarded(work, `.${digest(key).slice(0, 12)}.lock`)),
  };
}

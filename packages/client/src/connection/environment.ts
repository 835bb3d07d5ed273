import { getDefaultEnvironment } from "@modelcontextprotocol/client/stdio";

const PASSED_ON = ["LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/** What every child process gets of this one's environment. */
export function baseEnvironment(): Record<string, string> {
  const env = getDefaultEnvironment();
  for (const key of PASSED_ON) {
    const value = process.env[key];
    if (value !== undefined) env[key] = value;
  }
  return env;
}

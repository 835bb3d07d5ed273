import { spawn } from "node:child_process";
import { once } from "node:events";
import { checkQuestionUrl } from "../trust/url.ts";

/** Shows an address to a person, in a browser for example. Rejects when it cannot. */
export type Opener = (url: string) => Promise<void> | void;

const COMMANDS: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/**
 * Opens an address in the person's browser: as one argument of the system's opener, never through a shell.
 * @throws TrustError `unsafe_url` for anything but https, or http on this machine; Error when there is no opener
 */
export async function openInBrowser(url: string): Promise<void> {
  const { url: checked } = checkQuestionUrl(url, "openInBrowser", undefined);
  const [command, ...args] = COMMANDS[process.platform] ?? ["xdg-open"];
  const child = spawn(command, [...args, checked], { stdio: "ignore", detached: true, shell: false });
  await once(child, "spawn"); // rejects with the error event
  child.on("error", () => {}); // what happens to the browser later is not ours
  child.unref();
}

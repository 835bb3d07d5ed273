// A browser with a person in it, for programs that open one: `opener.ts <url>` signs in as alice, approves, and is led back.
import { Browser, consent } from "./browser.ts";

const { location } = await consent(new Browser(), process.argv[2] ?? "");
const back = await fetch(location);
process.exitCode = back.ok ? 0 : 1;

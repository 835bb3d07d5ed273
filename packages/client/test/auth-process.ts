// Lists the tools of a server with the tokens of a shared file: `auth-process.ts <url> <file>`. Nobody can be asked here.
import { fileTokenStore, oauth } from "../src/auth/index.ts";
import { createClient } from "../src/index.ts";

const [, , url = "", path = ""] = process.argv;
const auth = oauth({ store: fileTokenStore(path), onAuthorize: false });
await using client = createClient({ servers: { s: { url, auth, required: true, connectTimeoutMs: 30_000 } } });
console.log(`${(await client.listTools()).length} tool`);

import { pathsServer } from "./paths-server.ts";

await pathsServer().run(import.meta);

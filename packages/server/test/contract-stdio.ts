import { desk } from "./contract-server.ts";

await desk().stdio();

export { type ConsulOptions, consul } from "./consul.ts";
export type { RegisteredServer, Registrar, Registration } from "./types.ts";

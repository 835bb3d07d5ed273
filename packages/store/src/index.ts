export type { Acquired, HeldLease, LeaseStore } from "./leases.ts";
export { createMemoryStore, type MemoryStoreOptions } from "./memory.ts";
export {
  type Claim,
  type ClaimRequest,
  claimOrWait,
  type Lease,
  LeaseLost,
  type OutcomeStore,
} from "./outcomes.ts";
export { openMemory, type Stores } from "./stores.ts";

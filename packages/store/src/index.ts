export type { Acquired, HeldLease, LeaseStore } from "./leases.ts";
export type { MemoryOptions } from "./memory.ts";
export {
  type Claim,
  type ClaimRequest,
  claimOrWait,
  type Lease,
  LeaseLostError,
  type OutcomeStore,
} from "./outcomes.ts";
export { openMemory, type Stores } from "./stores.ts";
